-- Payload rules: what an app asks of its jobs holds for SQL too, and, where somebody wants it so, for the table itself.
--
-- `tasks.rules` carries a task's policy: what its jobs must have, which references,
-- whether sensitive content is refused. The patterns are those of the Python side.

-- Whether digits, with spaces or dashes between, are the number of a payment card.
CREATE FUNCTION rota.is_card(digits text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT plain.digits ~ '^(4([0-9]{12}|[0-9]{15}|[0-9]{18})|5[1-5][0-9]{14}|2(22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}|3[47][0-9]{13}|3(0[0-5]|[68][0-9])[0-9]{11}|35(2[89]|[3-8][0-9])[0-9]{12}|(6011|65[0-9]{2}|64[4-9][0-9]|62[0-9]{2})[0-9]{12,15})$'
       AND (SELECT sum(CASE WHEN place % 2 = 1 THEN digit WHEN digit > 4 THEN 2 * digit - 9 ELSE 2 * digit END) % 10 = 0
            FROM (SELECT symbol::integer AS digit, place
                  FROM regexp_split_to_table(reverse(plain.digits), '') WITH ORDINALITY AS s (symbol, place)) AS d)
    FROM (SELECT translate(is_card.digits, ' -', '') AS digits) AS plain
$$;

-- What a part of this name holds, if it should not be in a payload.
CREATE FUNCTION rota.sensitive_name(name text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT CASE
        WHEN plain.name ~ '(^|_)(password|passwd|passphrase|passcode|pwd|secret|secrets|token|tokens|api_?key|access_?key|private_?key|secret_?key|signing_?key|credential|credentials|authorization|auth_header|cookie|cookies|jwt)(_(hash|text|value|plain|base64|b64|[0-9]+))?$'
            THEN 'a secret'
        WHEN plain.name ~ '(^|_)(card_?number|credit_?card|debit_?card|cvv|cvv2|cvc|ssn|social_security_number|otp)$'
            THEN 'a personal number'
        WHEN plain.name ~ '(^|_)((e?mail|message|html|text|plain)_body|body_(html|text|plain)|(e?mail|message)_content|(document|file|attachment|page|pdf)_(content|contents|body|bytes|text|base64|b64)|raw_(e?mail|message|document))$'
            THEN 'the content of a mail or document'
        WHEN plain.name ~ '^(body|content|contents|html|attachment|attachments|document|file)$'
            THEN 'perhaps content'
    END
    FROM (SELECT translate(lower(regexp_replace(sensitive_name.name, '([a-z0-9])([A-Z])', '\1_\2', 'g')), '- .', '___') AS name)
        AS plain
$$;

-- What a text is by its looks, if it should not be in a payload.
CREATE FUNCTION rota.sensitive_text(said text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    IF length(said) < 13 THEN
        RETURN NULL;
    ELSIF said ~ '-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----' THEN
        RETURN 'a private key';
    ELSIF said ~ '(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}'
       OR said ~ '(?<![A-Za-z0-9])(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|[sr]k_live_[A-Za-z0-9]{16,}|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{35}|(Bearer|Basic) +[A-Za-z0-9._~+/=-]{16,})' THEN
        RETURN 'a token';
    ELSIF said ~ '://[^/@:?# ]+:[^/@?# ]+@' THEN
        RETURN 'an address with its password';
    ELSIF EXISTS (SELECT FROM regexp_matches(said, '(?<![0-9A-Za-z-])[2-6](?:[ -]?[0-9]){12,18}(?![0-9A-Za-z-])', 'g') AS m (found)
                  WHERE rota.is_card(m.found[1])) THEN
        RETURN 'a card number';
    ELSIF ltrim(left(said, 64), E' \t\r\n') ~ '^(%PDF-|JVBERi0|<!doctype html|<!DOCTYPE html|<!DOCTYPE HTML|<html|<HTML|data:[a-z]+/[^;,]+;base64,)'
       OR (SELECT count(*) FROM regexp_matches(said, '^(From|To|Cc|Subject|Date|Received|Return-Path|MIME-Version|Message-ID|Content-Type|DKIM-Signature): ', 'gn')) >= 3
       OR length(said) >= 2000 AND translate(said, E'\r\n', '') ~ '^[A-Za-z0-9+/]+={0,2}$' THEN
        RETURN 'the content of a mail or document';
    END IF;
    RETURN NULL;
END
$$;

-- The first part of a payload that should not be in it, in words; NULL: there is none. Never says what was found.
CREATE FUNCTION rota.sensitive(part jsonb, allow text[] DEFAULT '{}', path text DEFAULT '', under text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    inner_part record;
    here text;
    kind text;
    found text;
BEGIN
    CASE jsonb_typeof(part)
        WHEN 'object' THEN
            FOR inner_part IN SELECT e.key, e.value FROM jsonb_each(part) AS e LOOP
                here := CASE WHEN path = '' THEN inner_part.key ELSE path || '.' || inner_part.key END;
                CONTINUE WHEN inner_part.key = ANY (allow) OR here = ANY (allow);
                found := rota.sensitive(inner_part.value, allow, here,
                                        coalesce(rota.sensitive_name(inner_part.key), under));
                EXIT WHEN found IS NOT NULL;
            END LOOP;
            RETURN found;
        WHEN 'array' THEN
            FOR inner_part IN SELECT e.value, e.ordinality - 1 AS place
                              FROM jsonb_array_elements(part) WITH ORDINALITY AS e LOOP
                found := rota.sensitive(inner_part.value, allow, path || '[' || inner_part.place || ']', under);
                EXIT WHEN found IS NOT NULL;
            END LOOP;
            RETURN found;
        WHEN 'string' THEN
            IF under IS NOT NULL AND btrim(part #>> '{}') <> ''
               AND (under <> 'perhaps content' OR length(part #>> '{}') >= 200) THEN
                kind := replace(under, 'perhaps content', 'the content of a mail or document');
            ELSE
                kind := rota.sensitive_text(part #>> '{}');
            END IF;
        WHEN 'number' THEN
            kind := CASE WHEN under = 'a personal number' AND (part #>> '{}') !~ '[.eE]' THEN under END;
        ELSE
            kind := NULL;
    END CASE;
    RETURN coalesce(nullif(path, ''), 'the value') || ' looks like ' || kind;
END
$$;

-- Whether a value of a payload is an id, or a list of ids.
CREATE FUNCTION rota.is_ref(given jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE jsonb_typeof(given)
        WHEN 'string' THEN btrim(given #>> '{}') <> ''
        WHEN 'number' THEN (given #>> '{}') !~ '[.eE]'
        WHEN 'array' THEN jsonb_array_length(given) > 0
            AND NOT EXISTS (SELECT FROM jsonb_array_elements(given) AS e
                            WHERE jsonb_typeof(e.value) NOT IN ('string', 'number') OR NOT rota.is_ref(e.value))
        ELSE false
    END
$$;

-- What a job carries as its tenant, correlation or key: what the caller said, else its argument of that name.
-- Raises where the task's policy asks for it and it is not there, or is not what it should be.
CREATE FUNCTION rota.required(known rota.tasks, field text, argument text, said text, payload jsonb)
RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    given text := payload ->> argument;
    wrong text;
BEGIN
    IF NOT coalesce(known.rules -> 'policy' -> 'require' ? field, false) THEN
        RETURN said;
    END IF;
    IF given IS NULL AND said IS NULL THEN
        wrong := 'is missing';
    ELSIF field = 'tenant' AND given IS NOT NULL
          AND (jsonb_typeof(payload -> argument) <> 'number' OR given ~ '[.eE]') THEN
        wrong := 'must be a whole number';
    ELSIF field = 'correlation_id' AND coalesce(given, said) !~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' THEN
        wrong := 'must be a UUID';
    ELSIF field = 'key' AND (btrim(coalesce(given, said)) = '' OR octet_length(coalesce(given, said)) > 1000
                             OR given IS NOT NULL AND jsonb_typeof(payload -> argument) <> 'string') THEN
        wrong := 'must be a text of 1 to 1000 bytes';
    ELSIF given <> said THEN
        wrong := format('is one thing by its argument and another by %s =>', field);
    END IF;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'rota: % cannot be enqueued: % %', known.name, argument, wrong
            USING ERRCODE = 'check_violation',
                  HINT = format('Pass %s => ''…'', or put %s into the payload.', field, argument);
    END IF;
    RETURN coalesce(given, said);
END
$$;

-- Raise where a payload lacks a reference of its task's category, or carries what only belongs behind one.
CREATE FUNCTION rota.check_payload(known rota.tasks, payload jsonb) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    policy jsonb := known.rules -> 'policy';
    choice jsonb;
    found text;
BEGIN
    IF policy IS NULL THEN
        RETURN;
    END IF;
    IF policy -> 'require' ? 'category' AND known.category IS NULL THEN
        RAISE EXCEPTION 'rota: % cannot be enqueued: a category is missing', known.name
            USING ERRCODE = 'check_violation', HINT = 'Say it where the task is defined: @app.task(category="…").';
    END IF;
    FOR choice IN SELECT r.value FROM jsonb_array_elements(policy -> 'refs') AS r LOOP
        IF NOT EXISTS (SELECT FROM jsonb_array_elements_text(choice) AS n (name)
                       WHERE rota.is_ref(payload -> n.name)) THEN
            RAISE EXCEPTION 'rota: % cannot be enqueued: % is missing', known.name,
                (SELECT string_agg(n.name, ' or ') FROM jsonb_array_elements_text(choice) AS n (name))
                USING ERRCODE = 'check_violation',
                      HINT = format('Jobs of category %s carry it: an id, or a list of ids.', known.category);
        END IF;
    END LOOP;
    IF (policy ->> 'refuse')::boolean THEN
        found := rota.sensitive(payload, ARRAY (SELECT jsonb_array_elements_text(policy -> 'allow')));
        IF found IS NOT NULL THEN
            RAISE EXCEPTION 'rota: % cannot be enqueued: %', known.name, found
                USING ERRCODE = 'check_violation', HINT = 'Keep it where it belongs and pass a reference to it.';
        END IF;
    END IF;
END
$$;

-- Let the table itself refuse every new job without tenant, correlation, key and category, whoever writes it.
-- Jobs from before `since` are not touched, and run on. rota.enforce_rules(false) takes it back. (Nothing here looks
-- at the payload: the table's checks are made at every claim too.)
CREATE FUNCTION rota.enforce_rules(enforced boolean DEFAULT true, since timestamptz DEFAULT clock_timestamp())
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    ALTER TABLE rota.jobs DROP CONSTRAINT IF EXISTS jobs_carry_what_rules_ask;
    IF enforced THEN
        EXECUTE format('ALTER TABLE rota.jobs ADD CONSTRAINT jobs_carry_what_rules_ask CHECK (created_at < %L OR '
                       '(tenant IS NOT NULL AND correlation_id IS NOT NULL AND key IS NOT NULL '
                       'AND category IS NOT NULL) OR coalesce(headers ? ''rota.schedule'', false)) NOT VALID', since);
    END IF;
END
$$;

-- As in 0005, and now with the policy of the task.
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
    its_tenant text;
    its_correlation text;
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
    its_tenant := rota.required(known, 'tenant', 'tenant_id', enqueue.tenant, enqueue.payload);
    its_correlation := rota.required(known, 'correlation_id', 'correlation_id', enqueue.correlation_id, enqueue.payload);
    its_key := rota.required(known, 'key', 'idempotency_key', its_key, enqueue.payload);
    PERFORM rota.check_payload(known, enqueue.payload);
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
        'tenant', its_tenant, 'subject', enqueue.subject, 'key', its_key, 'unique_key', its_unique,
        'unique_scope', CASE WHEN its_unique IS NOT NULL THEN coalesce(rule ->> 'scope', 'started') END,
        'unique_window', rule -> 'window', 'on_duplicate', rule -> 'on_duplicate',
        'gate', 'serial:' || coalesce(its_tenant, '') || ':' || its_serial,
        'correlation_id', its_correlation, 'parent_id', enqueue.parent_id,
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
