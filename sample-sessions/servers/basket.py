"""A server that keeps its baskets in memory: what it holds is gone with the process. basket.py [PORT]"""
import itertools
import sys

from mcp.server.fastmcp import FastMCP

numbers = itertools.count(1)
baskets: dict[str, list[str]] = {}
http = len(sys.argv) > 1
mcp = FastMCP("basket", port=int(sys.argv[1]) if http else 8000, log_level="WARNING")


@mcp.tool()
def create_basket() -> dict:
    """Makes an empty basket and gives its basket_id."""
    basket_id = f"bsk-{next(numbers)}"
    baskets[basket_id] = []
    return {"basket_id": basket_id}


@mcp.tool()
def add_item(basket_id: str, sku: str) -> dict:
    """Puts one item into a basket."""
    if basket_id not in baskets:
        raise ValueError(f"unknown basket {basket_id}")
    baskets[basket_id].append(sku)
    return {"basket_id": basket_id, "items": list(baskets[basket_id])}


mcp.run("streamable-http" if http else "stdio")
