"""The ear on a connection that breaks: it lets go of the descriptor before anybody else can get its number."""

from __future__ import annotations

import asyncio
import select

import psycopg

from rota.stores.postgres.listen import Ear
from rota.stores.postgres.prompt import PromptConnection


async def test_an_ear_whose_connection_breaks_lets_go_of_its_descriptor_at_once(direct_database):
    connection = await PromptConnection.connect(direct_database, autocommit=True)
    ear = Ear(connection, lambda payload: None)
    listening = asyncio.create_task(ear.listen(30))
    await asyncio.sleep(0)
    descriptor = connection.fileno()
    with psycopg.connect(direct_database, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
    assert select.select([descriptor], [], [], 15)[0], "the server has said goodbye"
    while not connection.pgconn.status:  # what it said comes before the end of the line
        ear._read()

    assert not asyncio.get_running_loop().remove_reader(descriptor), "nobody listens there any more"
    outcome = await asyncio.gather(listening, return_exceptions=True)
    assert isinstance(outcome[0], psycopg.OperationalError)
    await connection.close()
