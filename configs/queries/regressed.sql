-- title: Regressed since the last run
-- meaning: Queries that fail in the latest execution of a system and did not in the one before it.
-- parameter layer text = retrieval: retrieval, generation or corpus.
-- parameter name text = %: The system's name; % stands for any.
WITH series AS (
    SELECT run_id, name, row_number() OVER (PARTITION BY name ORDER BY time DESC, execution_id DESC) AS back
    FROM executions
    WHERE layer = $layer AND name LIKE $name
),
states AS (
    SELECT series.name, series.back, query_id, query, category, reasons, first_relevant_rank, run_id
    FROM queries JOIN series USING (run_id)
    WHERE series.back <= 2
)
SELECT
    latest.name, query_id, latest.query, latest.category, latest.reasons,
    previous.first_relevant_rank AS rank_before, latest.first_relevant_rank AS rank_now,
    (SELECT judgments_digest FROM runs WHERE run_id = latest.run_id)
        <> (SELECT judgments_digest FROM runs WHERE run_id = previous.run_id) AS judgments_changed
FROM states AS latest JOIN states AS previous USING (name, query_id)
WHERE latest.back = 1 AND previous.back = 2 AND len(latest.reasons) > 0 AND len(previous.reasons) = 0
ORDER BY latest.name, query_id
