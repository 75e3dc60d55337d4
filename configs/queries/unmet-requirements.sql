-- title: Requirements most often unmet
-- meaning: Facts that answers failed to support by a citation, over the last executions of each system.
-- parameter last whole = 5: Executions to look back over, of each system.
-- parameter name text = %: The system's name; % stands for any.
-- parameter most whole = 20: Rows shown.
-- looks back: last
WITH series AS (
    SELECT run_id, name, row_number() OVER (PARTITION BY name ORDER BY time DESC, execution_id DESC) AS back
    FROM executions
    WHERE layer = 'generation' AND name LIKE $name
)
SELECT
    name, query_id, requirement_id, any_value(importance) AS importance,
    count(*) FILTER (NOT met) AS unmet, count(*) AS executions, bool_or(NOT met) FILTER (back = 1) AS unmet_now
FROM requirements JOIN series USING (run_id)
WHERE back <= $last
GROUP BY name, query_id, requirement_id
HAVING count(*) FILTER (NOT met) > 0
ORDER BY unmet DESC, name, query_id, requirement_id
LIMIT $most
