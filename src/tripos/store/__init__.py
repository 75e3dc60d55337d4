"""Run history as immutable Parquet files, read by DuckDB."""
