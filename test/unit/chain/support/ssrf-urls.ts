// Hosts to which callers must not make the service connect, in every spelling that is known to bypass weak checks. `%P`
// stands for a listening local port.

/** Spellings of addresses of this machine, in a URL's host. */
const LOCAL = [
  // Dotted, whole, and with parts left out.
  ...["127.0.0.1", "127.0.0.2", "127.1", "127.0.1", "127.255.255.254", "127.000.000.001"],
  ...["0.0.0.0", "0", "0.0", "0x0", "00000000", "0.0.0.0."],
  // As one number: decimal, hex, octal.
  ...["2130706433", "2130706434", "0x7f000001", "0x7F000001", "0X7F000001", "0x7f.1", "0x7f.0x0.0x0.0x1", "0x7f.0.1"],
  ...["017700000001", "00017700000001", "0177.0.0.1", "0177.0.0.01", "0177.1", "0177.0x0.1", "127.0x1", "127.00000001"],
  ...["0x7f000001.", "2130706433.", "127.1.", "127.0.0.1."],
  // Digits, dots and letters of other scripts, and characters that the parser drops or decodes.
  ...[
    "１２７.0.0.1",
    "１２７．０．０．１",
    "127。0。0。1",
    "127｡0｡0｡1",
    "①②⑦.⓪.⓪.①",
    "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
    "𝟙𝟚𝟟.𝟘.𝟘.𝟙",
    "１２７。１",
  ],
  ...["%31%32%37.0.0.1", "127%2e0%2e0%2e1", "127.0.0.%31", "%30x7f.1", "%EF%BC%91%32%37.1", "127.0\t.0.1"],
  "127.0\n.0.1",
  ...["127\u00ad.0.0.1", "12\u200b7.0.0.1", "0\u{1d601}7f.1"],
  // IPv6.
  ...["[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::0001]", "[0::1]", "[::]"],
  "[0::0]",
  ...["[0:0::0:1]", "[::0.0.0.1]", "[0:0:0:0:0:0:0.0.0.1]", "[::0:0]", "[0:0:0:0:0:0:0:0]"],
  // IPv4 inside IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP.
  ...["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::FFFF:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]", "[::ffff:0:127.0.0.1]"],
  ...["[::127.0.0.1]", "[::7f00:1]", "[::ffff:0.0.0.0]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]"],
  ...["[64:ff9b:1::7f00:1]", "[64:ff9b:1:ffff:ffff:ffff:7f00:1]", "[2002:7f00:1::]", "[2002:7f00:0001::1]"],
  ...["[2001:0:7f00:1::]", "[2001::80ff:fffe]", "[2001:0000:4136:e378:8000:63bf:80ff:fffe]", "[fe80::5efe:127.0.0.1]"],
];

/** First and last addresses of private and special blocks, and well-known addresses in them. */
const ELSEWHERE = [
  ...["0.0.0.1", "0.255.255.255", "10.0.0.0", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.127.255.255"],
  ...["100.100.100.200", "169.254.0.0", "169.254.169.254", "169.254.170.2", "169.254.169.253", "169.254.255.255"],
  ...["168.63.129.16", "172.16.0.0", "172.17.0.1", "172.31.255.255", "192.0.0.0", "192.0.0.192", "192.0.0.255"],
  ...["192.0.2.0", "192.0.2.255", "192.31.196.0", "192.31.196.255", "192.52.193.0", "192.52.193.255"],
  ...["192.88.99.0", "192.88.99.255", "192.168.0.0", "192.168.0.1", "192.168.255.255", "192.175.48.0"],
  ...["192.175.48.255", "198.18.0.0", "198.19.255.255", "198.51.100.0", "198.51.100.255", "203.0.113.0"],
  ...["203.0.113.255", "224.0.0.0", "224.0.0.251", "239.255.255.255", "240.0.0.0", "255.255.255.254"],
  "255.255.255.255",
  // The metadata address in other spellings.
  ...["2852039166", "0xa9fea9fe", "0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376", "025177524776", "169.254.43518"],
  ...["169.16689662", "１６９.254.169.254", "169。254。169。254", "%31%36%39.254.169.254", "169.254.169.254."],
  ...["[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]"],
  "[fd00:ec2::254]",
  // Private networks in other spellings.
  ...["10.1", "0xa000001", "167772161", "012.0.0.1", "0300.0250.0.1", "3232235521", "0xc0a80001", "192.168.1"],
  ...["[::ffff:10.0.0.1]", "[::ffff:192.168.0.1]", "[::ffff:c0a8:1]", "[64:ff9b::10.0.0.1]", "[2002:a00:1::1]"],
  // IPv6 outside the global unicast range.
  ...["[::2]", "[0:0:0:1::]", "[100::]", "[100::1]", "[100:0:0:1::1]", "[1fff:ffff::1]", "[4000::]", "[4000::1]"],
  ...["[5f00::1]", "[8000::1]", "[bfff::1]", "[e000::1]", "[fc00::]", "[fc00::1]", "[fd00::1]", "[fdff:ffff::1]"],
  ...["[fe00::1]", "[fe80::]", "[fe80::1]", "[febf::1]", "[fec0::1]", "[feff::1]", "[ff00::]", "[ff02::1]"],
  "[ff0e::1]",
  "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
  // Special blocks inside it.
  ...["[2001::]", "[2001::1]", "[2001:1::1]", "[2001:2::1]", "[2001:3::1]", "[2001:4:112::1]", "[2001:10::1]"],
  ...["[2001:1f:ffff::1]", "[2001:20::1]", "[2001:2f:ffff::1]", "[2001:30::1]", "[2001:1ff:ffff::1]", "[2001:db8::]"],
  ...["[2001:db8::1]", "[2001:db8:ffff:ffff::1]", "[2002::]", "[2002:ffff:ffff::1]", "[2002:5db8:d822::1]"],
  ...["[2620:4f:8000::]", "[2620:4f:8000:ffff::1]", "[3fff::]", "[3fff::1]", "[3fff:fff:ffff::1]"],
];

/** Names of this machine, of private networks and of systems other than DNS, and invalid host names. */
export const forbiddenHosts: readonly string[] = [
  ...["localhost", "LOCALHOST", "localhost.", "ｌｏｃａｌｈｏｓｔ", "%6c%6f%63%61lhost", "local\u00adhost"],
  "localhos\u{1d57f}",
  ...["a.localhost", "rpc.a.localhost", "a.localhost.", "localhost.localdomain", "localhost6", "ip6-localhost"],
  ...["metadata", "node", "redis", "host", "kubernetes", "router.local", "printer.local.", "a.LOCAL", "a.ⓛocal"],
  ...["metadata.google.internal", "metadata.goog.internal", "host.docker.internal", "instance-data.ec2.internal"],
  ...["a.onion", "a.home.arpa", "a.test", "a.invalid", "a.example", "rpc.example", "example", "a.home", "a.lan"],
  ...["a.corp", "a.intranet", "a.private", "a.alt", "kubernetes.default.svc.cluster.local", "1.0.0.127.in-addr.arpa"],
  ...["rpc.example.org.", "rpc..example.org", ".example.org", "-a.example.org", "a-.example.org", "a_b.example.org"],
  ...["a,b.example.org", "a!b.example.org", "a$b.example.org", "(a).example.org", "a*.example.org", "a=b.example.org"],
  `${"a".repeat(64)}.example.org`,
  `${"a.".repeat(124)}example.org`,
];

/** Public names that resolve to private addresses. */
export const PRIVATE_ADDRESS_HOSTS: Readonly<Record<string, string>> = {
  "127.0.0.1.nip.example.net": "127.0.0.1",
  "127-0-0-1.sslip.example.net": "127.0.0.1",
  "7f000001.rbndr.example.net": "127.0.0.1",
  "localtest.example.net": "127.0.0.1",
  "localtest6.example.net": "::1",
  "loopback.example.net": "127.0.0.2",
  "mapped.example.net": "::ffff:127.0.0.1",
  "zero.example.net": "0.0.0.0",
  "zero6.example.net": "::",
  "private.example.net": "10.0.0.1",
  "metadata.example.net": "169.254.169.254",
  "linklocal.example.net": "fe80::1",
  "zone.example.net": "fe80::1%lo",
  "globalzone.example.net": "2606:4700::1111%lo",
  "ula.example.net": "fd00::1",
  "nat64.example.net": "64:ff9b::7f00:1",
  "sixtofour.example.net": "2002:7f00:1::1",
  "xn--bcher-kva.example.net": "127.0.0.1",
  "garbage.example.net": "not an address",
  "empty.example.net": "",
};

/** URLs that refer to this machine, however they are parsed. */
export const localUrls: readonly string[] = [
  ...[...LOCAL, ...ELSEWHERE].map((host) => `https://${host}:%P/`),
  ...Object.keys(PRIVATE_ADDRESS_HOSTS).map((name) => `https://${name}:%P/`),
  // Without a port, and with one of the usual ones.
  ...["https://127.0.0.1", "https://127.0.0.1:443/", "https://[::1]", "https://127.0.0.1:8545/"],
  // Ambiguous start or end of the host.
  ...["https:127.0.0.1:%P", "https:/127.0.0.1:%P/", "https:///127.0.0.1:%P/", "https:\\\\127.0.0.1:%P\\"],
  ...["https:////127.0.0.1:%P/", "https:\\/127.0.0.1:%P/", "HTTPS://127.0.0.1:%P/", "hTtPs://[::1]:%P/"],
  ...[" https://127.0.0.1:%P/ ", "\u0000https://127.0.0.1:%P/", "ht\ntps://127.0.0.1:%P/", "https:\t//127.0.0.1:%P/"],
  ...["https://127.0.0.1:%P\\@rpc.example.org/", "https://127.0.0.1:%P#@rpc.example.org/"],
  ...["https://127.0.0.1:%P?@rpc.example.org/", "https://127.0.0.1:%P/@rpc.example.org/", "https://@127.0.0.1:%P/"],
  ...["https://rpc.example.org@127.0.0.1:%P/", "https://rpc.example.org:443@127.0.0.1:%P/"],
  ...["https://rpc.example.org%40127.0.0.1:%P/", "https://rpc.example.org:x@[::1]:%P/"],
  ...["https://127.0.0.1:%P:443/", "https://127.0.0.1:443:%P/", "https://127.0.0.1%00.example.org:%P/"],
  ...["https://127.0.0.1%0a.example.org:%P/", "https://127.0.0.1 .example.org:%P/", "https://127.0.0.1:%P%2f@1.1.1.1/"],
  ...["https://[::1%25lo]:%P/", "https://[::1%lo]:%P/", "https://[fe80::1%25eth0]:%P/", "https://[::1"],
  "https://::1:%P/",
  ...["https://[127.0.0.1]:%P/", "https://[::ffff:127.0.0.1:%P/", "https://256.0.0.1:%P/", "https://127.0.0.1.1:%P/"],
  ...["https://0x7f.0x0.0x0.0x0.0x1:%P/", "https://0xg.0.0.1:%P/", "https://4294967296:%P/", "https://09.0.0.1:%P/"],
  // Other schemes than https.
  ...["http://127.0.0.1:%P/", "http://localhost:%P/", "ws://127.0.0.1:%P/", "wss://127.0.0.1:%P/"],
  "ftp://127.0.0.1:%P/",
  ...["gopher://127.0.0.1:%P/_x", "dict://127.0.0.1:%P/", "//127.0.0.1:%P/", "127.0.0.1:%P", "unix:/var/run/node.sock"],
  ...["file:///etc/passwd", "file://127.0.0.1:%P/", "data:application/json,{}", "javascript:0"],
  "blob:https://127.0.0.1:%P/x",
  ...["ldap://127.0.0.1:%P/", "jar:https://127.0.0.1:%P!/", "https+unix://%2Fvar%2Frun:%P/", "", " "],
  ...["https://", "https:"],
];

/** URLs with an allowed address that violate another rule. */
export const invalidUrls: readonly string[] = [
  ...["http://rpc.example.org/", "http://rpc.example.org:443/", "http://93.184.216.34:8545/", "ws://rpc.example.org/"],
  ...["wss://rpc.example.org/", "ftp://rpc.example.org:443/", "ftps://rpc.example.org:443/", "rpc.example.org"],
  ...["https://user@rpc.example.org/", "https://user:pass@rpc.example.org/", "https://:pass@rpc.example.org/"],
  ...["https://user@93.184.216.34/", "https://%75@rpc.example.org/", "https://user:@rpc.example.org:8545/"],
  ...["https://rpc.example.org:22/", "https://rpc.example.org:80/", "https://rpc.example.org:444/"],
  ...["https://rpc.example.org:6379/", "https://rpc.example.org:8546/", "https://rpc.example.org:0/"],
  ...["https://rpc.example.org:18545/", "https://93.184.216.34:22/", "https://[2606:2800:220:1::1]:25/"],
  `https://rpc.example.org/${"x".repeat(2048)}`,
  `https://rpc.example.org/${" ".repeat(1000)}x`,
  `https://rpc.example.org/${"é".repeat(700)}`,
  `${" ".repeat(2048)}https://rpc.example.org/`,
];
