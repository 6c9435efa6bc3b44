# SPDX-License-Identifier: Apache-2.0
"""A slow owner wakes late: replaced, its settle is refused; not replaced, its answer counts (R2).

The owner is made slow by stopping its worker, which can then not renew. Another worker answers.
"""

import pytest

from support.backend import Reply
from support.expect import (PENDING, UNKNOWN, assert_first, assert_problem, assert_replay,
                            assert_settled, code_of)

POLICY = """
version: 1
tenant: none
defaults: {lease: 1s}
routes:
  - {name: hold, match: POST /hold}
  - {name: retry, match: POST /retry, in_doubt: retry}
  - {name: canary, match: POST /canary}
  - name: probe
    match: POST /probed
    in_doubt: {probe: "GET /probe/{key}", trust_absent_after: 1s, timeout: 5s}
"""


class SlowOwner:
    """A running request whose worker is frozen, and a connection to a worker that is not."""

    def __init__(self, gateway, backend, path, key, *later):
        self.gateway = gateway
        self.reply = backend.holding(body=b'{"by": "slow owner"}')
        backend.script(key, self.reply, *later)
        self.client = gateway.send(path, key)
        self.pid = gateway.worker_of(backend.wait(key))
        self.other = gateway.freeze_at_rest(self.pid, "/canary")
        self.ask = (path, key)

    def wake(self):
        self.gateway.thaw(self.pid)

    def send_until(self, reached):
        """Asks until a request is on its way that made reached() true; refusals are pending."""
        return self.gateway.send_until(reached, *self.ask, client=self.other)

    def post_after_lease(self):
        return self.gateway.post_settled(*self.ask, client=self.other)


@pytest.fixture
def slow_owner(gateway, backend, key):
    """Makes a slow owner; its worker runs again when the test ends, however it ends."""
    made = []

    def make(path, *later):
        made.append(SlowOwner(gateway, backend, path, key, *later))
        return made[-1]

    yield make
    for owner in made:
        owner.reply.hold.set()
        owner.wake()


@pytest.mark.parametrize("answered", ["while frozen", "after waking"])
def test_a_replaced_owner_is_refused_and_the_takers_record_stands(gateway, backend, key, slow_owner,
                                                                  answered):
    owner = slow_owner("/retry", Reply(body=b'{"by": "taker"}'))
    taken = owner.post_after_lease()
    assert_first(taken)
    assert taken.body == b'{"by": "taker"}'
    if answered == "while frozen":
        owner.reply.hold.set()
        assert owner.reply.sent.wait(5)
        owner.wake()
    else:
        owner.wake()
        owner.reply.hold.set()
    late = owner.client.read()
    assert_first(late)
    assert late.body == b'{"by": "slow owner"}', "its own client gets its own backend's answer"
    assert_settled(gateway, backend, "/retry", key, taken)
    assert [r.header("Counterfoil-Fence") for r in backend.of(key)] == ["1", "2"]


def test_a_replaced_owner_does_not_disturb_a_taker_still_running(gateway, backend, key, slow_owner):
    taker_reply = backend.holding(body=b'{"by": "taker"}')
    owner = slow_owner("/retry", taker_reply)
    taker = owner.send_until(lambda: backend.executions(key) == 2)
    owner.wake()
    owner.reply.hold.set()
    assert owner.client.read().body == b'{"by": "slow owner"}'
    assert_problem(gateway.post("/retry", key), PENDING)
    taker_reply.hold.set()
    taken = taker.read()
    assert_first(taken)
    assert taken.body == b'{"by": "taker"}'
    assert_settled(gateway, backend, "/retry", key, taken)
    assert backend.executions(key) == 2


def test_an_owner_past_its_lease_whom_nobody_replaced_settles(gateway, backend, key, slow_owner):
    owner = slow_owner("/hold")
    assert_problem(owner.post_after_lease(), UNKNOWN)
    owner.reply.hold.set()
    owner.wake()
    first = owner.client.read()
    assert_first(first)
    assert first.body == b'{"by": "slow owner"}'
    assert_settled(gateway, backend, "/hold", key, first)
    assert backend.executions(key) == 1


def test_an_owner_that_wakes_before_its_answer_is_pending_again_then_settles(gateway, backend, key,
                                                                             slow_owner):
    owner = slow_owner("/hold")
    assert_problem(owner.post_after_lease(), UNKNOWN)
    owner.wake()
    gateway.post_until(lambda answer: code_of(answer) == PENDING, "the owner renews",
                       "/hold", key, client=owner.other)
    owner.reply.hold.set()
    first = owner.client.read()
    assert_first(first)
    assert_settled(gateway, backend, "/hold", key, first)


def test_an_owner_that_settles_during_a_probe_wins_over_its_404(gateway, backend, key, slow_owner):
    probe = backend.holding(status=404)
    backend.script_probe(key, probe)
    owner = slow_owner("/probed")
    prober = owner.send_until(lambda: backend.probes_of(key))
    owner.reply.hold.set()
    owner.wake()
    first = owner.client.read()
    assert_first(first)
    assert_settled(gateway, backend, "/probed", key, first)
    probe.hold.set()
    assert_replay(prober.read(), first)
    assert backend.executions(key) == 1
