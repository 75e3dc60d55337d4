-- title: Fabricated citations by model
-- meaning: Citations of fragments that no corpus holds, by the model that answered; every run counts once.
-- parameter name text = %: The system's name; % stands for any.
SELECT
    coalesce(generation_rows.model, 'not named') AS model,
    count(DISTINCT run_id) AS runs,
    count(*) AS answers,
    count(*) FILTER (len(nonexistent) > 0) AS answers_fabricating,
    sum(len(cited))::BIGINT AS citations,
    sum(len(nonexistent))::BIGINT AS fabricated,
    sum(len(nonexistent)) / nullif(sum(len(cited)), 0) AS share,
    min(query_id) FILTER (len(nonexistent) > 0) AS for_example
FROM generation_rows JOIN runs USING (run_id)
WHERE runs.name LIKE $name
GROUP BY coalesce(generation_rows.model, 'not named')
ORDER BY share DESC NULLS LAST, model
