"""Pure functions over columns, one record a measure, and the statistics on them."""
