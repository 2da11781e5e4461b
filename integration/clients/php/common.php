<?php
// Shared by the client and the worker: both print what happens as lines of JSON.

declare(strict_types=1);

function event(string $event, array $fields = []): void
{
    if (isset($fields['data'])) {
        $fields['data'] = base64_encode($fields['data']);
    }
    // One write a line, so that the reader never sees a part of it.
    fwrite(STDOUT, json_encode(['event' => $event] + $fields, JSON_THROW_ON_ERROR) . "\n");
}

function stop(string $why): never
{
    fwrite(STDERR, $why . "\n");
    exit(1);
}
