-- What a task says of its jobs' keys and tags, as data, so that rota.enqueue()
-- makes the very jobs that the task's own code would make.

ALTER TABLE rota.tasks ADD COLUMN rules jsonb NOT NULL DEFAULT '{}';

-- The key that a task's rule gives a job: the text of an argument. Where the
-- rule is a function of the code, SQL cannot know it, and says so.
CREATE FUNCTION rota.key_by_rule(known rota.tasks, what text, payload jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    rule jsonb := known.rules -> what;
    words text := replace(CASE what WHEN 'unique' THEN 'unique_key' ELSE what END, '_', ' ');
    found text;
BEGIN
    IF rule IS NULL THEN
        RETURN CASE WHEN what = 'serial' THEN payload ->> known.gate_path END;
    END IF;
    IF rule ->> 'path' IS NULL THEN
        RAISE EXCEPTION 'rota: % finds its % by a function of its code, which SQL cannot call', known.name, words
            USING ERRCODE = 'feature_not_supported',
                  HINT = format('Pass %s => ''…'' (or '''' for none), or enqueue it from its code.',
                                CASE what WHEN 'unique' THEN 'unique_key' ELSE what END);
    END IF;
    found := CASE WHEN payload ? (rule ->> 'path') THEN payload ->> (rule ->> 'path') ELSE rule ->> 'default' END;
    IF found = '' OR octet_length(found) > 1000 THEN
        RAISE EXCEPTION 'rota: the % of % is its argument %, and that is %', words, known.name,
            quote_literal(rule ->> 'path'), CASE WHEN found = '' THEN 'empty' ELSE 'too long' END
            USING ERRCODE = 'invalid_parameter_value', HINT = 'A key has 1 to 1000 bytes.';
    END IF;
    RETURN found;
END
$$;

-- As in 0002, and now with the rules: a key that the caller does not give is the
-- one that the task's rule gives; an empty text means none.
CREATE OR REPLACE FUNCTION rota.enqueue(
    task text, payload jsonb DEFAULT '{}', queue text DEFAULT NULL, priority integer DEFAULT NULL,
    delay interval DEFAULT NULL, run_at timestamptz DEFAULT NULL, tenant text DEFAULT NULL, subject text DEFAULT NULL,
    key text DEFAULT NULL, unique_key text DEFAULT NULL, serial text DEFAULT NULL, correlation_id text DEFAULT NULL,
    parent_id uuid DEFAULT NULL, tags text[] DEFAULT NULL, created_by text DEFAULT NULL, external_id text DEFAULT NULL,
    deadline interval DEFAULT NULL, max_attempts integer DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    known rota.tasks;
    answer record;
    rule jsonb;
    its_key text;
    its_unique text;
    its_serial text;
BEGIN
    SELECT * INTO known FROM rota.tasks t WHERE t.name = enqueue.task;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'rota: no task named % is published', quote_literal(enqueue.task)
            USING ERRCODE = 'no_data_found',
                  HINT = 'Start a worker that knows it once, or check the name: SELECT name FROM rota.tasks.';
    END IF;
    IF coalesce(jsonb_typeof(enqueue.payload), 'null') <> 'object' THEN
        RAISE EXCEPTION 'rota: the payload of % must be a JSON object of its arguments, not %',
            quote_literal(enqueue.task), coalesce(jsonb_typeof(enqueue.payload), 'null') USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Measured as text: what comes from a table may be compressed.
    IF octet_length(enqueue.payload::text) > 262144 THEN
        RAISE EXCEPTION 'rota: the payload of % is % bytes; the limit is 262144',
            quote_literal(enqueue.task), octet_length(enqueue.payload::text)
            USING ERRCODE = 'program_limit_exceeded', HINT = 'Store the content elsewhere and pass a reference to it.';
    END IF;
    its_key := CASE WHEN enqueue.key IS NULL THEN rota.key_by_rule(known, 'key', enqueue.payload)
                    ELSE nullif(enqueue.key, '') END;
    its_serial := CASE WHEN enqueue.serial IS NULL THEN rota.key_by_rule(known, 'serial', enqueue.payload)
                       ELSE nullif(enqueue.serial, '') END;
    IF enqueue.unique_key IS NULL THEN
        its_unique := rota.key_by_rule(known, 'unique', enqueue.payload);
        rule := known.rules -> 'unique';
    ELSE
        its_unique := nullif(enqueue.unique_key, '');
    END IF;
    SELECT e.id, e.stored INTO answer FROM rota.enqueue_jobs(jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
        'task', enqueue.task, 'queue', coalesce(enqueue.queue, known.queue),
        'priority', coalesce(enqueue.priority, known.priority),
        'max_attempts', coalesce(enqueue.max_attempts, (known.retry ->> 'attempts')::integer),
        'timeout', known.timeout, 'delay', extract(epoch FROM enqueue.delay), 'run_at', enqueue.run_at,
        'tenant', enqueue.tenant, 'subject', enqueue.subject, 'key', its_key, 'unique_key', its_unique,
        'unique_scope', CASE WHEN its_unique IS NOT NULL THEN coalesce(rule ->> 'scope', 'started') END,
        'unique_window', rule -> 'window', 'on_duplicate', rule -> 'on_duplicate',
        'gate', 'serial:' || coalesce(enqueue.tenant, '') || ':' || its_serial,
        'correlation_id', enqueue.correlation_id, 'parent_id', enqueue.parent_id,
        'tags', coalesce(to_jsonb(enqueue.tags), known.rules -> 'tags'),
        'created_by', coalesce(enqueue.created_by, 'sql:' || current_user),
        'external_id', enqueue.external_id, 'deadline_in', extract(epoch FROM enqueue.deadline),
        'category', known.category, 'payload_version', known.payload_version
    )) || jsonb_build_object('payload', enqueue.payload))) AS e;
    IF answer.stored = 'conflict' THEN
        RAISE EXCEPTION 'rota: the key % belongs to job %, which was enqueued with other arguments',
            quote_literal(its_key), answer.id
            USING ERRCODE = 'unique_violation', HINT = 'Use another key for other work.';
    ELSIF answer.stored = 'rejected' THEN
        RAISE EXCEPTION 'rota: a job with the unique key % exists already: %', quote_literal(its_unique), answer.id
            USING ERRCODE = 'unique_violation', HINT = 'Wait for it, or choose another policy than reject.';
    END IF;
    RETURN answer.id;
END
$$;
