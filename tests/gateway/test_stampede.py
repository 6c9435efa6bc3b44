# SPDX-License-Identifier: Apache-2.0
"""Many identical requests at once over two workers: whatever the timing, one execution (R1)."""

import threading

import pytest

from support.expect import PENDING, assert_first, assert_problem, assert_replay, is_replay, new_key
from support.rawhttp import encode

POLICY = """
version: 1
tenant: none
routes:
  - name: order.create
    match: POST /orders
"""

CALLERS = 50
ROUNDS = 200
BODY = b'{"sku": "A-1", "quantity": 2}'


@pytest.fixture
def callers(gateway):
    """Kept-alive connections, one half on each worker."""
    one, other = gateway.workers()
    clients = gateway.clients_on(one, CALLERS // 2) + gateway.clients_on(other, CALLERS // 2)
    yield clients
    for client in clients:
        client.close()


def write_all_but_the_last_byte(clients, key):
    request = encode("POST", "/orders", [("Idempotency-Key", key),
                                         ("Content-Type", "application/json")], BODY)
    for client in clients:
        client.send(request[:-1])


def release_at_one_barrier(clients):
    """Two threads, one for the connections of each worker, write the last bytes together."""
    barrier = threading.Barrier(2)

    def release(half):
        barrier.wait()
        for client in half:
            client.send(BODY[-1:])

    middle = len(clients) // 2
    threads = [threading.Thread(target=release, args=(half,))
               for half in (clients[:middle], clients[middle:])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check_round(answers):
    """One first answer; the rest are pending or replays of it. Returns the number of replays."""
    first = [answer for answer in answers if answer.status == 201 and not is_replay(answer)]
    assert len(first) == 1
    assert_first(first[0])
    replays = 0
    for answer in answers:
        if answer is first[0]:
            continue
        if answer.status == 409:
            assert_problem(answer, PENDING)
        else:
            assert_replay(answer, first[0])
            replays += 1
    return replays


def test_fifty_identical_posts_execute_once_in_each_of_200_rounds(gateway, backend, callers):
    for _ in range(ROUNDS):
        key = new_key()
        write_all_but_the_last_byte(callers, key)
        release_at_one_barrier(callers)
        check_round([client.read() for client in callers])
        assert backend.executions(key) == 1


def test_while_the_one_execution_runs_the_other_49_are_pending(gateway, backend, callers, key):
    reply = backend.holding()
    backend.script(key, reply)
    write_all_but_the_last_byte(callers, key)
    release_at_one_barrier(callers)
    owner = gateway.worker_of(backend.wait(key))
    middle = len(callers) // 2
    elsewhere = callers[middle:] if owner == gateway.workers()[0] else callers[:middle]
    for client in elsewhere:
        assert_problem(client.read(), PENDING)
    reply.hold.set()
    rest = [client for client in callers if client not in elsewhere]
    assert check_round([client.read() for client in rest]) == 0
    assert backend.executions(key) == 1


def test_a_stampede_on_a_settled_key_gives_only_replays(gateway, backend, callers, key):
    first = gateway.post("/orders", key, BODY)
    assert_first(first)
    write_all_but_the_last_byte(callers, key)
    release_at_one_barrier(callers)
    for client in callers:
        assert_replay(client.read(), first)
    assert backend.executions(key) == 1


def test_fifty_different_keys_at_once_execute_once_each(gateway, backend, callers):
    keys = [new_key() for _ in callers]
    for client, each in zip(callers, keys):
        client.send(encode("POST", "/orders", [("Idempotency-Key", each)], BODY)[:-1])
    release_at_one_barrier(callers)
    for client in callers:
        assert_first(client.read())
    assert [backend.executions(each) for each in keys] == [1] * CALLERS
