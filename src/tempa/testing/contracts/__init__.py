"""Contract suites: what every implementation of a port has to do. Yours too.

A suite is a set of classes of pytest tests. Inherit from them, and give the fixture they ask for:

    class TestAdmission(AdmissionContract): ...

    @pytest.fixture
    async def bench(tmp_path):
        clock, wake = ManualClock(), MyWake()
        store = await MyStore.open(tmp_path, clock=clock, wake=wake)
        yield StoreBench(store=store, clock=clock, wake=wake)
        await store.close()

Tests are coroutines (pytest-asyncio, mode "auto"). For failures that show their values, call
`pytest.register_assert_rewrite("tempa.testing.contracts")` in a conftest.py.
"""
