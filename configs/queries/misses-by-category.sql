-- title: Misses by category over time
-- meaning: Scored and failed queries of each category in each of the last executions of a system, latest first.
-- parameter last whole = 5: Executions to look back over, of each system.
-- parameter layer layer = retrieval: retrieval, generation or corpus.
-- parameter name text = %: The system's name; % stands for any.
-- looks back: last
WITH series AS (
    SELECT run_id, name, time, execution_id, row_number() OVER (PARTITION BY name ORDER BY time DESC, execution_id DESC) AS back
    FROM executions
    WHERE layer = $layer AND name LIKE $name
)
SELECT
    name, time, run_id, coalesce(category, 'none') AS category,
    count(*) AS scored, count(*) FILTER (len(reasons) > 0) AS missed,
    count(*) FILTER (len(reasons) > 0) / count(*) AS share
FROM queries JOIN series USING (run_id)
WHERE back <= $last
GROUP BY name, time, execution_id, run_id, coalesce(category, 'none')
ORDER BY name, time DESC, execution_id DESC, category
