-- title: Regressed since the last run
-- meaning: Queries that fail in the latest execution of a system and did not in the one before it.
-- parameter layer layer = retrieval: retrieval, generation or corpus.
-- parameter name text = %: The system's name; % stands for any.
-- looks back: 2
WITH series AS (
    SELECT run_id, name, row_number() OVER (PARTITION BY name ORDER BY time DESC, execution_id DESC) AS back
    FROM executions
    WHERE layer = $layer AND name LIKE $name
),
steps AS (
    SELECT
        series.name, query_id, queries.query, queries.category, queries.reasons, first_relevant_rank, judgments_digest, back,
        lead(queries.reasons) OVER previous AS reasons_before,
        lead(first_relevant_rank) OVER previous AS rank_before,
        lead(judgments_digest) OVER previous AS judgments_before
    FROM queries JOIN series USING (run_id) JOIN runs USING (run_id)
    WHERE back <= 2
    WINDOW previous AS (PARTITION BY series.name, query_id ORDER BY back)
)
SELECT
    name, query_id, query, category, reasons, rank_before, first_relevant_rank AS rank_now,
    judgments_digest <> judgments_before AS judgments_changed
FROM steps
WHERE back = 1 AND len(reasons) > 0 AND len(reasons_before) = 0
ORDER BY name, query_id
