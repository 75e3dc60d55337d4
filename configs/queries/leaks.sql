-- title: Leaks ever
-- meaning: Queries that were ever shown something their reader may not read, in any layer: when first and last, how often, and
-- meaning: whether the latest execution of that system still does it.
-- parameter name text = %: The system's name; % stands for any.
WITH series AS (
    SELECT
        run_id, layer, name, time,
        row_number() OVER (PARTITION BY layer, name ORDER BY time DESC, execution_id DESC) AS back
    FROM executions
    WHERE name LIKE $name
)
SELECT
    series.name, layer, query_id, any_value(query) AS query,
    count(*) AS executions, min(time) AS first_seen, max(time) AS last_seen, bool_or(back = 1) AS still,
    arg_max(run_id, time) AS last_run_id
FROM misses JOIN series USING (run_id, layer)
WHERE list_contains(reasons, 'leak')
GROUP BY series.name, layer, query_id
ORDER BY still DESC, last_seen DESC, series.name, layer, query_id
