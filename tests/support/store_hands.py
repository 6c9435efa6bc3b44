# SPDX-License-Identifier: Apache-2.0
"""What the tests do to an LMDB store behind the gateway's back: read, damage, hold its write lock.

Owns the names of the store's databases, in one place. `opened` opens the store in this process, for
one look or one change; `Holder` is another process that holds the write lock, as a stuck disk or a
frozen program would, until it is released or killed.
Invariant: this process never has a store open twice (LMDB's rule), and nothing stays open.
"""

import contextlib
import ctypes
import subprocess
import sys

RECORD_DATABASES = ("records", "pending")
META = "meta"
FORMAT_KEY = b"format"

_NOT_FOUND = -30798
_RDONLY = 0x20000
_DATABASES_MAX = 16


class Value(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_void_p)]

    @classmethod
    def of(cls, data):
        """Its memory is the caller's bytes object, which must outlive it."""
        return cls(len(data), ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p))

    def bytes(self):
        return ctypes.string_at(self.data, self.size)


def _library():
    lmdb = ctypes.CDLL("liblmdb.so.0")
    lmdb.mdb_strerror.restype = ctypes.c_char_p
    lmdb.mdb_env_close.restype = None
    lmdb.mdb_txn_abort.restype = None
    return lmdb


_lmdb = _library()


def _must(status):
    if status != 0:
        raise OSError(f"LMDB: {_lmdb.mdb_strerror(status).decode()}")


class Store:
    """An open environment. Every method is a transaction of its own."""

    def __init__(self, directory):
        self.env = ctypes.c_void_p()
        _must(_lmdb.mdb_env_create(ctypes.byref(self.env)))
        _must(_lmdb.mdb_env_set_maxdbs(self.env, _DATABASES_MAX))
        _must(_lmdb.mdb_env_open(self.env, str(directory).encode(), 0, 0o600))

    def close(self):
        _lmdb.mdb_env_close(self.env)

    def begin(self, flags=0):
        txn = ctypes.c_void_p()
        _must(_lmdb.mdb_txn_begin(self.env, None, flags, ctypes.byref(txn)))
        return txn

    @staticmethod
    def _database(txn, name):
        """The database's handle, or None where the store has none of that name."""
        dbi = ctypes.c_uint()
        status = _lmdb.mdb_dbi_open(txn, name.encode(), 0, ctypes.byref(dbi))
        if status == _NOT_FOUND:
            return None
        _must(status)
        return dbi

    def get(self, database, key):
        """The value's bytes, or None."""
        txn = self.begin(_RDONLY)
        try:
            dbi = self._database(txn, database)
            if dbi is None:
                return None
            found = Value()
            status = _lmdb.mdb_get(txn, dbi, ctypes.byref(Value.of(key)), ctypes.byref(found))
            if status == _NOT_FOUND:
                return None
            _must(status)
            return found.bytes()
        finally:
            _lmdb.mdb_txn_abort(txn)

    def put(self, database, key, value):
        txn = self.begin()
        try:
            dbi = self._database(txn, database)
            assert dbi is not None, f"the store has no database {database}"
            _must(_lmdb.mdb_put(txn, dbi, ctypes.byref(Value.of(key)),
                                ctypes.byref(Value.of(value)), 0))
        except BaseException:
            _lmdb.mdb_txn_abort(txn)
            raise
        _must(_lmdb.mdb_txn_commit(txn))

    def where(self, record_id):
        """(database, bytes) of the record with this id, 64 hex digits."""
        for database in RECORD_DATABASES:
            found = self.get(database, bytes.fromhex(record_id))
            if found is not None:
                return database, found
        raise AssertionError(f"no record {record_id}")


@contextlib.contextmanager
def opened(directory):
    store = Store(directory)
    try:
        yield store
    finally:
        store.close()


class Holder:
    """Another process that holds the store's write lock. A context manager, which ends it."""

    def __init__(self, directory):
        self.process = subprocess.Popen([sys.executable, __file__, str(directory)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"held\n"

    def release(self):
        """Lets go in good order."""
        self.process.stdin.close()
        self._end()

    def kill(self):
        """kill -9 while it holds the lock."""
        self.process.kill()
        self._end()

    def _end(self):
        self.process.wait(20)
        self.process.stdout.close()
        self.process.stdin.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()


def _hold(directory):
    """What the other process does: ends its transaction when its standard input ends."""
    store = Store(directory)
    txn = store.begin()
    sys.stdout.write("held\n")
    sys.stdout.flush()
    sys.stdin.read()
    _lmdb.mdb_txn_abort(txn)
    store.close()


if __name__ == "__main__":
    _hold(sys.argv[1])
