-- title: Sources most often missed
-- meaning: Expected sources that were not found, over the last executions of each system: how often, and for how many queries.
-- parameter last whole = 5: Executions to look back over, of each system.
-- parameter layer layer = retrieval: retrieval or corpus.
-- parameter name text = %: The system's name; % stands for any.
-- parameter most whole = 20: Rows shown.
-- looks back: last
WITH series AS (
    SELECT run_id, name, row_number() OVER (PARTITION BY name ORDER BY time DESC, execution_id DESC) AS back
    FROM executions
    WHERE layer = $layer AND name LIKE $name
),
lost AS (
    SELECT name, query_id, back, unnest(missed_sources) AS source_id
    FROM misses JOIN series USING (run_id)
    WHERE back <= $last
)
SELECT
    name, source_id, count(*) AS misses, count(DISTINCT query_id) AS queries, count(DISTINCT back) AS executions,
    min(query_id) AS for_example
FROM lost
GROUP BY name, source_id
ORDER BY misses DESC, queries DESC, name, source_id
LIMIT $most
