-- title: Never hit
-- meaning: Queries that had nothing relevant within their depth in any of a system's last executions; best_rank is the best
-- meaning: place of an expected source in them, null: never within limit.
-- parameter last whole = 5: Executions to look back over, of each system.
-- parameter name text = %: The system's name; % stands for any.
-- looks back: last
WITH series AS (
    SELECT run_id, name, row_number() OVER (PARTITION BY name ORDER BY time DESC, execution_id DESC) AS back
    FROM executions
    WHERE layer = 'retrieval' AND name LIKE $name
)
SELECT
    name, query_id, any_value(query) AS query, any_value(category) AS category,
    count(*) AS executions, min(first_relevant_rank) AS best_rank
FROM queries JOIN series USING (run_id)
WHERE back <= $last AND positive AND complete
GROUP BY name, query_id
HAVING bool_and(list_contains(reasons, 'no_hit'))
ORDER BY name, best_rank NULLS LAST, query_id
