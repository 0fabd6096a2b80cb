"""Addresses that URLs of users may lead to: public ones by https, and the networks of the operator."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.webhooks.networks import LOOPBACK, NetworkPolicy, host_of
from roost.errors import Invalid

NONE = NetworkPolicy()
OWN = NetworkPolicy.of(LOOPBACK)
OFFICE = NetworkPolicy.of(["10.0.0.0/8", "fd00::/8"])
CLOSED = (
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "169.254.0.0/16",
    "100.64.0.0/10",
    "0.0.0.0/8",
    "192.0.0.0/29",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://127.1.2.3:8501/hooks/x",
        "https://0.0.0.0/",
        "https://10.1.2.3/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://[::]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:a9fe:a9fe]/",
        "https://[::7f00:1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "https://[fe80::1%25eth0]/",
        "https://[fc00::1]/",
        "https://[fec0::1]/",
        "https://[ff02::1]/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0x7f000001/",
        "https://017700000001/",
        "https://127.1/",
        "https://1.2.3.4.5/",
        "http://example.com/",
        "http://8.8.8.8/",
        "http://localhost/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "//example.com/x",
        "https:///x",
        "https://",
        "https://ann:secret@example.com/",
        "https://ann@example.com/",
        "https://exa mple.com/",
        "https://example.com\\@127.0.0.1/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com/\n",
        "https://ex\u00e4mple.com/",
        "https://[::1/",
        "x" * 3_000,
        "",
        None,
        7,
    ],
)
def test_a_url_that_must_never_be_reached_is_refused_when_it_is_given(url: object) -> None:
    with pytest.raises(Invalid) as refused:
        NONE.check_url(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("policy", "url"),
    [
        (NONE, "https://example.com/x?y=1"),
        (NONE, "https://8.8.8.8:8443/"),
        (NONE, "https://[2606:4700::1111]/"),
        (NONE, "https://xn--exmple-cua.com/"),
        (OWN, "http://127.0.0.1:8000/"),
        (OWN, "http://localhost:8000/"),
        (OWN, "http://localhost.:8000/"),
        (OWN, "http://[::1]:8000/"),
        (OWN, "http://[::ffff:127.0.0.1]:8000/"),
        (OFFICE, "http://ci.office/"),
        (OFFICE, "http://10.9.8.7/"),
    ],
)
def test_a_url_of_a_public_host_or_an_allowed_network_is_accepted(policy: NetworkPolicy, url: str) -> None:
    assert policy.check_url(url) == url


def test_http_leaves_the_allowed_networks_for_no_name_unless_the_operator_named_one() -> None:
    for url in ("http://example.com/", "http://10.0.0.1/", "http://localhost.example.com/"):
        with pytest.raises(Invalid, match="https"):
            OWN.check_url(url)


def test_a_fragment_is_dropped_and_the_port_follows_from_the_scheme() -> None:
    assert NONE.check_url("https://example.com/x#y") == "https://example.com/x"
    assert host_of("https://Example.com./x") == ("https", "example.com", 443)
    assert host_of("http://[::1]:80/") == ("http", "::1", 80)


addresses = st.sampled_from(CLOSED).flatmap(lambda network: st.ip_addresses(network=network))


@given(addresses)
def test_no_closed_address_is_reached_in_any_form(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    forms: list[ipaddress.IPv4Address | ipaddress.IPv6Address] = [
        address,
        ipaddress.IPv6Address((0xFFFF << 32) | number),
        ipaddress.IPv6Address((0x64FF9B << 96) | number),
        ipaddress.IPv6Address((0x2002 << 112) | (number << 80) | 1),
        ipaddress.IPv6Address(number),
    ]
    for form in forms:
        for scheme in ("http", "https"):
            assert NONE.problem(scheme, form) is not None, form


@given(st.ip_addresses())
def test_what_is_allowed_is_public_or_in_a_network_of_the_operator(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if NONE.problem("https", address) is None:
        assert address.is_global
        assert not address.is_multicast
    if OFFICE.problem("http", address) is None:
        assert any(address in network for network in OFFICE.networks) or getattr(address, "ipv4_mapped", None)
    assert NONE.problem("http", address) is not None
