-- title: Unjudged results to review next
-- meaning: Sources among the top results of the latest execution that nobody judged for that query: failed queries first, since
-- meaning: an unlisted right answer may be among them.
-- parameter top whole = 5: Positions looked at.
-- parameter name text = %: The system's name; % stands for any.
-- parameter most whole = 50: Rows shown.
-- looks back: 1
WITH series AS (
    SELECT run_id, name, row_number() OVER (PARTITION BY name ORDER BY time DESC, execution_id DESC) AS back
    FROM executions
    WHERE layer = 'retrieval' AND name LIKE $name
),
seen AS (
    SELECT name, run_id, query_id, source_id, min(rank) AS rank, arg_min(fragment_id, rank) AS fragment_id
    FROM ranked_results JOIN series USING (run_id)
    WHERE back = 1 AND rank <= $top AND relevant IS NULL
    GROUP BY name, run_id, query_id, source_id
)
SELECT seen.name, query_id, query, seen.rank, source_id, fragment_id, len(reasons) > 0 AS failed
FROM seen JOIN queries USING (run_id, query_id)
WHERE positive
ORDER BY failed DESC, seen.rank, seen.name, query_id, source_id
LIMIT $most
