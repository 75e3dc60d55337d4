-- title: Flapping
-- meaning: Queries that went from passing to failing or back between successive executions, over a system's last ones.
-- parameter last whole = 10: Executions to look back over, of each system.
-- parameter layer layer = retrieval: retrieval, generation or corpus.
-- parameter name text = %: The system's name; % stands for any.
-- looks back: last
WITH series AS (
    SELECT run_id, name, time, execution_id, row_number() OVER (PARTITION BY name ORDER BY time DESC, execution_id DESC) AS back
    FROM executions
    WHERE layer = $layer AND name LIKE $name
),
steps AS (
    SELECT
        name, query_id, query, category, back, len(reasons) > 0 AS failed,
        lag(len(reasons) > 0) OVER (PARTITION BY name, query_id ORDER BY back DESC) AS failed_before
    FROM queries JOIN series USING (run_id)
    WHERE back <= $last
)
SELECT
    name, query_id, any_value(query) AS query, any_value(category) AS category,
    count(*) AS executions, count(*) FILTER (failed) AS failed, count(*) FILTER (failed <> failed_before) AS changes,
    bool_or(failed) FILTER (back = 1) AS fails_now
FROM steps
GROUP BY name, query_id
HAVING count(*) FILTER (failed <> failed_before) > 0
ORDER BY changes DESC, name, query_id
