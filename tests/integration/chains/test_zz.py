import time
from tests.integration.chains.test_refunds import *
from tests.integration.chains.conftest import *
async def test_t(house):
    n=house.nodes[0]
    raw=house.chain.treasury.signed(make.pay_sol(house.chain.treasury.key, Pubkey.new_unique(), 5_000_000))
    house.chain.cluster.holding=True
    for name,f in (("height",n.block_height),("slot",n.slot),("tx",lambda: n.get_transaction("1"*63+"2"*1)),("send",lambda: n.send(raw))):
        t=time.perf_counter()
        for _ in range(10): r=await f()
        print(name,(time.perf_counter()-t)/10*1000,"ms", r)
    t=time.perf_counter(); house.chain.cluster.tick(100); print("tick100",(time.perf_counter()-t)*1000)
