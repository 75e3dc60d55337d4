-- title: Slowest queries
-- meaning: Queries by their median latency over the last executions of each system, in milliseconds.
-- parameter last whole = 5: Executions to look back over, of each system.
-- parameter layer layer = retrieval: retrieval, generation or corpus.
-- parameter name text = %: The system's name; % stands for any.
-- parameter most whole = 20: Rows shown.
WITH series AS (
    SELECT execution_id, name, row_number() OVER (PARTITION BY name ORDER BY time DESC, execution_id DESC) AS back
    FROM executions
    WHERE layer = $layer AND name LIKE $name
)
SELECT
    name, query_id, count(*) AS executions,
    median(latency_ms) AS median_ms, max(latency_ms) AS max_ms, arg_min(latency_ms, back) AS latest_ms
FROM latencies JOIN series USING (execution_id)
WHERE back <= $last
GROUP BY name, query_id
ORDER BY median_ms DESC, name, query_id
LIMIT $most
