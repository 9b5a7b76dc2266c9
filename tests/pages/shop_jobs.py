"""The jobs of an online print shop: mail, invoices, payments, pictures, exports. What fails, fails for a reason.

The seeding loads this file as if it were deployed at /srv/shop/jobs.py, so that traces look like somebody's own.
"""

from __future__ import annotations

from typing import Any, Literal

from rota import Queue, Retry, Rota, every


class CardDeclined(Exception):
    """The bank said no; asking again would change nothing."""


class ImageBroken(Exception):
    """What was uploaded is no picture."""


def define(app: Rota) -> None:
    """All tasks and schedules of the shop."""

    @app.task(queue="mail", retry=Retry(attempts=5, base=10), tags=["customer"])
    def send_mail(to: str, template: str, order: int | None = None, locale: str = "en") -> dict[str, Any]:
        """Send one mail from a template to a customer."""
        return deliver(to, template)

    @app.task(queue="newsletter", priority=200)
    def send_newsletter(to: str, issue: str) -> None:
        """Send one copy of the newsletter."""
        deliver(to, issue)

    @app.task(queue="invoices", retry=Retry(attempts=3, base=30), category="documents")
    def render_invoice(
        order: int, customer: str, currency: Literal["EUR", "USD", "GBP"] = "EUR"
    ) -> dict[str, Any]:
        """Render the invoice of an order as PDF and store it."""
        return {"pages": 1 + order % 3, "file": f"invoices/{order}.pdf", "address": address_of(customer)}

    @app.task(
        queue="payments",
        priority=50,
        retry=Retry(
            attempts=4, base=20, classes={CardDeclined: "non_retryable", ConnectionError: "transient"}
        ),
        serial="customer",
        timeout="30s",
    )
    def charge_card(order: int, customer: str, amount: str, card_token: str) -> dict[str, Any]:
        """Charge a customer's card once; one customer's charges run one after another."""
        return charge(order, amount, customer)

    @app.task(queue="images", retry=Retry(attempts=3, base=5, classes={ImageBroken: "non_retryable"}))
    def make_thumbnail(photo: str, width: int = 320) -> dict[str, Any]:
        """Make a small picture of an uploaded photo."""
        return shrink(photo, width)

    @app.task(queue="exports", timeout="1h", category="export")
    def export_orders(month: str, file_type: Literal["csv", "parquet"] = "csv") -> dict[str, Any]:
        """Write all orders of a month to the accountant's folder."""
        return {
            "rows": 48_211,
            "file": f"exports/orders-{month}.{file_type}",
            "sum_cents": 9_007_199_254_740_993,
        }

    @app.task(queue="imports", retry=Retry(attempts=3, base=60))
    def import_catalogue(supplier: str, url: str) -> dict[str, Any]:
        """Read a supplier's price list."""
        prices = read_feed(url)
        bad = {"skipped": ["a2-foil: no price"]} if supplier == "inkhaus" else {}
        return {"supplier": supplier, "items": len(prices), **bad}

    @app.task(queue="imports", retry=Retry(attempts=6, base=15, classes={ConnectionError: "transient"}))
    def sync_stock(warehouse: str) -> dict[str, Any]:
        """Ask a warehouse what it has."""
        return {"changed": ask_warehouse(warehouse)}

    @app.task(queue="search")
    def index_product(sku: str) -> None:
        """Put one product into the search index."""

    @app.task(queue="images")
    def render_preview(design: str, dpi: int = 300) -> None:
        """Render a print preview with the native renderer."""

    app.schedule(every("5m"), name="stock", tz="Europe/Berlin")(sync_stock, warehouse="hamburg")
    app.schedule("0 * * * *", name="catalogue", tz="Europe/Berlin")(
        import_catalogue, supplier="paperworks", url="https://paperworks.example/prices.xml"
    )
    app.schedule("30 2 * * *", name="nightly-export", tz="Europe/Berlin", misfire="all")(
        export_orders, month="2026-11"
    )
    app.schedule("0 8 * * MON", name="newsletter", tz="America/New_York", jitter="10m")(
        send_newsletter, to="subscribers@shop.example", issue="weekly"
    )
    app.schedule("*/30 6-20 * * MON-FRI", name="reindex", tz="UTC", overlap="skip")(index_product, sku="all")


QUEUES = (
    Queue("mail", target="1m"),
    Queue("payments", target="1m", max_pending=5000),
    Queue("invoices", target="2m"),
    Queue("images", target="1m"),
    Queue("newsletter", target="6h"),
)


def deliver(to: str, template: str) -> dict[str, Any]:
    if to.endswith("@full.example"):
        raise OSError(f"552 5.2.2 <{to}>: the mailbox is full")
    if to.endswith("@slow.example"):
        raise ConnectionError("mail.shop.example:587 did not answer within 10 s")
    return {"message": f"<{abs(hash(to)) % 10**8}@shop.example>", "template": template}


def address_of(customer: str) -> str:
    addresses = {"c-1001": "Elbstraße 7, Hamburg"}
    if customer.startswith("guest-"):
        return str(addresses[customer])
    return addresses.get(customer, "Hauptstraße 1, Berlin")


def charge(order: int, amount: str, customer: str) -> dict[str, Any]:
    if order % 61 == 0:
        raise CardDeclined(f"order {order}: the bank declined {amount} (insufficient_funds)")
    if customer.endswith("17") and order % 3 > 0:
        try:
            raise TimeoutError("read timed out after 5.0 s")
        except TimeoutError as cause:
            raise ConnectionError("payments.example: no answer to POST /v2/charges") from cause
    return {"charge": f"ch_{order:06d}", "amount": amount}


def shrink(photo: str, width: int) -> dict[str, Any]:
    if photo.endswith(".heic"):
        raise ImageBroken(f"{photo}: cannot identify image file (HEIC without its codec)")
    return {"file": photo.replace(".jpg", f"-{width}.jpg"), "bytes": width * 91}


def read_feed(url: str) -> list[str]:
    if "oldpress" in url:
        raise ValueError(f"{url} is no price list: expected <prices>, found <html> in line 1")
    return ["a4-matt", "a3-gloss", "poster-xl"]


def ask_warehouse(warehouse: str) -> int:
    if warehouse == "lisbon":
        raise ConnectionError("stock.lisbon.example: connection refused")
    return 12
