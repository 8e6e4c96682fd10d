"""What may be called: every dangerous address we know of, in every spelling, and what stays open."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tempa.core.addresses import check_url, is_twin_of_open_loopback, literal_address, refused

DANGEROUS = {
    "0.0.0.0": "this host",  # noqa: S104 - an address in a table
    "0.1.2.3": "this network",
    "10.0.0.1": "private",
    "10.255.255.255": "private, last",
    "100.64.0.1": "carrier NAT",
    "100.100.100.200": "Alibaba metadata",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback, last",
    "168.63.129.16": "Azure platform",
    "169.254.169.254": "metadata of most clouds",
    "169.254.170.2": "ECS credentials",
    "172.16.0.1": "private",
    "172.31.255.255": "private, last",
    "192.0.0.8": "protocol assignments",
    "192.0.0.192": "Oracle metadata",
    "192.0.2.1": "documentation",
    "192.88.99.1": "6to4 relay",
    "192.168.1.1": "private",
    "198.18.0.1": "benchmarks",
    "198.19.255.255": "benchmarks, last",
    "198.51.100.7": "documentation",
    "203.0.113.7": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.250": "multicast, SSDP",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::127.0.0.1": "IPv4-compatible",
    "::ffff:127.0.0.1": "IPv4-mapped loopback",
    "::ffff:10.0.0.1": "IPv4-mapped private",
    "::ffff:169.254.169.254": "IPv4-mapped metadata",
    "::ffff:0:127.0.0.1": "IPv4-translated",
    "64:ff9b::7f00:1": "NAT64 of loopback",
    "64:ff9b::a9fe:a9fe": "NAT64 of metadata",
    "64:ff9b:1::7f00:1": "local NAT64",
    "100::1": "discard",
    "2001::1": "Teredo",
    "2001:0:7f00:1::": "Teredo of loopback",
    "2001:20::1": "ORCHID",
    "2001:db8::1": "documentation",
    "2002:7f00:1::": "6to4 of loopback",
    "2002:a9fe:a9fe::": "6to4 of metadata",
    "3fff::1": "documentation",
    "5f00::1": "segment routing",
    "fc00::1": "unique local",
    "fd00:ec2::254": "AWS metadata",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local with a zone",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
}
PUBLIC = (
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
    "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255",
    "172.32.0.0", "192.0.1.1", "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0",
    "223.255.255.255", "::ffff:8.8.8.8", "2001:200::1", "2001:4860:4860::8888", "2003::1", "2606:4700::1111",
    "3ffe:ffff::1", "2a00::1",
)  # fmt: skip
SPELLINGS_OF_LOOPBACK = (
    "127.0.0.1", "127.1", "127.0.1", "127.0.0.1.", "0x7f000001", "0X7F.1", "0x7f.0x0.0x0.0x1", "2130706433",
    "017700000001", "0177.0.0.1", "0177.0x0.1", "00000000000000000000177.0.0.1", "0x0000000000007f000001",
    "\uff11\uff12\uff17.0.0.1", "\u2460\u2461\u2466.1", "127\u30020\u30020\u30021", "127\uff0e1",
    "127\uff611",
)  # fmt: skip
SPELLINGS_OF_LOOPBACK_6 = (
    "[::1]", "::1", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::1%25lo]", "[::1%lo]", "[\uff1a\uff1a1]",
)  # fmt: skip
LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


def test_the_table_is_long_enough() -> None:
    assert len(DANGEROUS) >= 40


@pytest.mark.parametrize("address", DANGEROUS)
def test_a_dangerous_address_is_refused(address: str) -> None:
    assert refused(address)
    assert refused(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_not_refused(address: str) -> None:
    assert not refused(address)


@pytest.mark.parametrize("text", ["", "example.com", "127.1", "1.2.3.4.5", "[::1]", "0x7f.1", "::g"])
def test_what_is_not_an_address_is_refused(text: str) -> None:
    assert refused(text, (ip_network("0.0.0.0/0"), ip_network("::/0")))


def test_an_allowed_network_opens_itself_and_nothing_else() -> None:
    allowed = (ip_network("10.1.0.0/16"),)
    assert not refused("10.1.2.3", allowed)
    assert not refused("::ffff:10.1.2.3", allowed)
    assert refused("10.2.0.1", allowed)
    assert refused("127.0.0.1", allowed)
    assert refused("64:ff9b::a01:203", allowed)


def test_behind_an_allowed_nat64_prefix_the_ipv4_table_holds() -> None:
    allowed = (ip_network("64:ff9b::/96"),)
    assert not refused("64:ff9b::8.8.8.8", allowed)
    assert refused("64:ff9b::169.254.169.254", allowed)
    assert not refused("64:ff9b::10.0.0.1", (*allowed, ip_network("10.0.0.0/8")))


@given(st.integers(0, 2**32 - 1))
def test_a_mapped_address_is_judged_as_the_one_it_carries(number: int) -> None:
    assert refused(IPv6Address(0xFFFF << 32 | number)) == refused(IPv4Address(number))


@pytest.mark.parametrize("host", SPELLINGS_OF_LOOPBACK)
def test_every_spelling_of_an_ipv4_address_is_recognised(host: str) -> None:
    assert literal_address(host) == IPv4Address("127.0.0.1")


@pytest.mark.parametrize("host", SPELLINGS_OF_LOOPBACK_6)
def test_every_spelling_of_an_ipv6_address_is_recognised(host: str) -> None:
    assert literal_address(host) == IPv6Address("::1")


@pytest.mark.parametrize(
    "host",
    ["", ".", "example.com", "127.0.0.1.example.com", "0x7g", "08", "256.1", "1.2.3.4.5", "4294967296"],
)
def test_a_name_is_no_literal(host: str) -> None:
    assert literal_address(host) is None


_PARTS = st.one_of(
    st.integers(0, 2**32).map(str), st.integers(0, 2**32).map(hex), st.integers(0, 2**32).map("0{:o}".format)
)


@given(st.lists(_PARTS, min_size=1, max_size=5).map(".".join))
@example("0")
@example("00")
@example("1.2.65536")
def test_numbers_are_read_as_inet_aton_reads_them(host: str) -> None:
    try:
        expected = IPv4Address(socket.inet_aton(host))
    except OSError:
        expected = None
    assert literal_address(host) == expected


@given(st.text(max_size=40))
def test_any_text_is_a_literal_or_is_not(host: str) -> None:
    found = literal_address(host)
    assert found is None or refused(found) in (True, False)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com/hook?a=%20b#c",
        "HTTPS://Example.COM:8443/hook",
        "https://hooks_1.example.com/x",
        "https://xn--bcher-kva.example/",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]:443/",
        "https://example.com./",
        "https://a.b-c.d/" + "x" * 2000,
    ],
)
def test_a_good_url_passes_the_door(url: str) -> None:
    assert check_url(url) is None


@pytest.mark.parametrize(
    "host", [*SPELLINGS_OF_LOOPBACK, *SPELLINGS_OF_LOOPBACK_6[:1], "LOCALHOST", "a.localhost."]
)
def test_loopback_is_refused_at_the_door_in_every_spelling(host: str) -> None:
    assert "public address" in (check_url(f"https://{host}/hook") or "")


@pytest.mark.parametrize("address", [text for text in DANGEROUS if "%" not in text])
def test_every_dangerous_literal_is_refused_at_the_door(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    assert "public address" in (check_url(f"https://{host}:8443/hook") or "")


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("http://example.com/", "Use https://"),
        ("ftp://example.com/", "https://"),
        ("//example.com/", "https://"),
        ("example.com/hook", "https://"),
        ("", "https://"),
        ("https:example.com", "https://"),
        ("https:///hook", "host"),
        ("https://:443/", "host"),
        ("https://./", "host"),
        ("https://user:secret@example.com/", "password"),
        ("https://example.com@127.0.0.1/", "password"),
        ("https://example.com:0/", "port"),
        ("https://example.com:65536/", "port"),
        ("https://example.com:/", "port"),
        ("https://example.com:4\u0664/", "port"),
        ("https://exa mple.com/", "spaces"),
        ("https://example.com/a b", "spaces"),
        ("https://example.com/\n", "control"),
        ("\thttps://example.com/", "control"),
        ("https://example.com/\x00", "control"),
        ("https://example.com/\u00a0", "spaces"),
        ("https://example.com\\@127.0.0.1/", "backslash"),
        ("https://example.com/" + "x" * 2048, "2048"),
        ("https://b\u00fccher.example/", "xn--bcher-kva.example"),
        ("https://example.com/\u00e9", "Percent-encode"),
        ("https://%31%32%37.0.0.1/", "DNS name"),
        ("https://-a.example/", "DNS name"),
        ("https://a..example/", "DNS name"),
        ("https://" + "a" * 64 + ".example/", "DNS name"),
        ("https://" + "a." * 127 + "example/", "DNS name"),
        ("https://1.2.3.256/", "number"),
        ("https://example.0x7f/", "number"),
        ("https://[8.8.8.8]/", "brackets"),
        ("https://[::1/", "IPv6 address in brackets"),
    ],
)
def test_a_bad_url_is_refused_in_words_that_say_what_to_do(url: str, hint: str) -> None:
    assert hint in (check_url(url) or "")


@given(st.text(max_size=60).map("https://{}".format) | st.text(max_size=60))
def test_no_text_breaks_the_door(url: str) -> None:
    assert check_url(url) is None or len(check_url(url) or "") > 10


def test_plain_http_needs_leave_or_an_open_loopback() -> None:
    assert check_url("http://example.com/", allow_http=True) is None
    assert check_url("http://127.0.0.1:9000/", allow_networks=LOOPBACK) is None
    assert check_url("http://127.1:9000/", allow_networks=LOOPBACK) is None
    assert check_url("http://localhost:9000/", allow_networks=LOOPBACK) is None
    assert check_url("http://[::1]:9000/", allow_networks=LOOPBACK) is None
    assert "https" in (check_url("http://example.com/", allow_networks=LOOPBACK) or "")
    assert "https" in (check_url("http://10.0.0.1/", allow_networks=(ip_network("10.0.0.0/8"),)) or "")
    assert "public" in (check_url("http://127.0.0.1/", allow_http=True) or "")


def test_localhost_is_open_where_either_loopback_is() -> None:
    for network in LOOPBACK:
        assert check_url("https://localhost/", allow_networks=(network,)) is None
    assert is_twin_of_open_loopback("::1", LOOPBACK[:1])
    assert not is_twin_of_open_loopback("127.0.0.2", LOOPBACK[1:])
    assert not is_twin_of_open_loopback("::1", ())
