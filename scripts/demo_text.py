# SPDX-License-Identifier: Apache-2.0
"""What make demo says, in English and in Chinese. Owns wording only.

Both languages have the same names; tests/lint/test_demo_text.py holds them to it.
"""

TEXTS = {
    "en": {
        "intro": "Counterfoil, played from beginning to end. Nothing is asked of you.\n"
                 "  shop     http://127.0.0.1:{shop_port}   knows nothing of idempotency\n"
                 "  gateway  http://127.0.0.1:{port}   stands before it, two workers",
        "without": "Without the gateway: one payment, sent twice straight to the shop",
        "without_end": "The shop charged {count} times. That is what we are here to prevent; its "
                       "books are emptied now.",
        "three": "Three clients send one payment with one key at the same moment",
        "three_end": "Three clients, {count} charge. All three hold the answer {id}.",
        "timeout": "A client loses patience after 1 second; the shop needs 2.5 for the order",
        "timeout_end": "The order was made {count} time; the retry got the first order's answer, "
                       "{id}.",
        "conflict": "The first payment's key comes again, for another amount",
        "conflict_end": "Refused: the key belongs to another request. Charged for this key: "
                        "{count} time.",
        "kill": "The shop has charged, its answer is under way, and the gateway is killed (kill -9)",
        "killed": "kill -9 of the workers {pids}",
        "probe": "the lease ends; the gateway asks the shop whether it knows the key",
        "kill_end": "The probe found {id}; it is the answer from now on. Charged {count} time.",
        "restart": "The gateway is stopped and started again",
        "restarted": "gateway stopped and started",
        "restart_end": "All {count} first answers are still there, byte for byte.",
        "books": "The shop's own books",
        "books_end": "{payments} payments with {payments} keys, {orders} order with one key, "
                     "{charged} cents charged: one charge each.",
        "no_answer": "no answer within {seconds} s; the client hangs up",
        "lost": "the connection was lost; the client knows nothing",
        "replayed": "replayed",
        "waits": "waits {seconds} s",
        "done": "Everything happened as told.",
        "failed": "This did NOT happen as told: {reason}",
        "logs": "Logs, books and records are kept in {directory}.",
    },
    "zh": {
        "intro": "Counterfoil 演示，从头到尾自动进行，无需操作。\n"
                 "  商店  http://127.0.0.1:{shop_port}   对幂等一无所知\n"
                 "  网关  http://127.0.0.1:{port}   位于商店之前，两个 worker",
        "without": "没有网关：同一笔支付直接向商店发送两次",
        "without_end": "商店扣款 {count} 次。这正是要防止的；现在清空商店的账本。",
        "three": "三个客户端同时用同一个 key 发送同一笔支付",
        "three_end": "三个客户端，扣款 {count} 次。三者得到的都是同一个结果 {id}。",
        "timeout": "客户端等 1 秒就放弃，而商店处理订单需要 2.5 秒",
        "timeout_end": "订单只创建了 {count} 次；重试得到的是第一次的结果 {id}。",
        "conflict": "第一笔支付的 key 再次到来，但金额不同",
        "conflict_end": "已拒绝：该 key 属于另一个请求。此 key 共扣款 {count} 次。",
        "kill": "商店已扣款，应答尚在途中，此时网关被 kill -9",
        "killed": "kill -9 worker 进程 {pids}",
        "probe": "租约到期；网关向商店查询是否认识这个 key",
        "kill_end": "查询找到 {id}，从此它就是结果。扣款 {count} 次。",
        "restart": "停止并重新启动网关",
        "restarted": "网关已停止并重新启动",
        "restart_end": "{count} 个首次结果全部还在，逐字节相同。",
        "books": "商店自己的账本",
        "books_end": "{payments} 个 key 共 {payments} 笔支付，一个 key 共 {orders} 个订单，"
                     "扣款 {charged} 分：每笔恰好一次。",
        "no_answer": "{seconds} 秒内没有应答；客户端断开",
        "lost": "连接中断；客户端什么也不知道",
        "replayed": "重放",
        "waits": "等待 {seconds} 秒",
        "done": "一切如上所述。",
        "failed": "与所述不符：{reason}",
        "logs": "日志、账本和记录保留在 {directory}。",
    },
}


def texts(environment):
    """The texts for the language of the environment, as the C library would choose it."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if environment.get(name):
            return TEXTS["zh" if environment[name].startswith("zh") else "en"]
    return TEXTS["en"]
