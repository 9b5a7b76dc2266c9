"""How handlers are executed: coroutines on the loop, plain functions in threads."""
