//! Seeds of a few lines each.

/// `Host`, `Origin` and `Sec-Fetch-Site`; `-` for none.
pub(super) const REQUESTS: &[&str] = &[
    "localhost:5000\nhttp://localhost:5000\nsame-origin",
    "127.0.0.1:5000\n-\n-",
    "[::1]:5000\nhttp://[::1]:5000\nnone",
    "registry.localhost.\nhttp://registry.localhost.",
    "attacker.example:5000\nhttps://attacker.example\ncross-site",
    "localhost.attacker.example\n-\nsame-site",
    "attacker.example@127.0.0.1:5000",
    "kubernetes.default.svc\nnull",
    "0x7f.1",
    "-\nhttp://127.0.0.1\n-",
    "-",
];

/// An annotation, the keys that the release sets, and the live Secret.
pub(super) const GENERATED: &[&str] = &[
    "a=password, b=password:64,c=hex,d=base64:16, e=uuid",
    "a=hex:16,b=hex:1024,c=password:12,d=password:1024\nx,y\na=eA==\nb=\nc=no base64",
    "a=uuid:7",
    "a=hex,a=uuid",
    "a=hex\na",
    "a/b=hex",
    "a=hex:99999",
    "..a=hex",
    ",, ,",
    "a=dice",
];

/// Patterns of one document, one in a line.
pub(super) const PATTERNS: &[&str] = &[
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$\n^[a-z]+$\nabc\n^[a-z]+$",
    ".{800}\n.{800}1\n.{800}2\n.{900}\n.{1000}",
    "(.{1000}){1000}\n(.{1000}){1000}1\n(a|b|c){900}",
    "(?i)\\pL+\\d\\w\\s\n[[:alpha:]]\\x{10FFFF}\\z\n(?P<name>a)(?:b)\\Qc.d\\E",
    "\\pL{500}\n(?i)[a-\u{10FFFF}]{500}\n\\p{Greek}\\P{Cyrillic}",
    "(\n[\n*\n\\\n(?<n\na{1001}\n\\C",
    "((((a*)*)*)*)*b\n(a?){60}a{60}\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "",
];

/// Untrusted text.
pub(super) const TEXTS: &[&str] = &[
    "plain\ttext\n\u{fc} \u{2603} \u{65e5}\u{672c}\u{8a9e}",
    "\u{1b}[2Jgone\r\u{9b}31m\0\u{7f}",
    "a\u{202e}b\u{2066}c\u{2069}\u{61c}\u{200b}\u{feff}",
    "pay\u{e0061}\u{e007f}\u{e0100}\u{fe0f}\u{2028}\u{2029}",
    "\\u{001B} \\u001b \"quoted\" <<: {a: [b]} # c",
    "<<",
    "  two   spaces\n\n",
];

/// A known_hosts file with all kinds of lines.
pub(super) const KNOWN_HOSTS: &[&str] = &["# servers\n\
    example.com,*.example.org,!x.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHjIwcRQMDZHOFEo63cN6P7hUW+pM96cuCeLOwPM4v8x me\n\
    [git.example.com]:2222 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\n\
    |1|bxT0NO3ZfaGljMZcwQTYxicigOM=|11AGRvvXYa/W0456W8vCb7a/unk= ssh-rsa AAAAB3NzaC1yc2EAAAAD\n\
    @revoked * ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\n@cert-authority *.example.net ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYA\n\
    old.example.com 1024 35 1234\n"];

/// Expressions with objects that make them expensive.
pub(super) const EXPRESSIONS: &[&str] = &[
    "object.spec.replicas <= 5 && has(object.metadata.labels)\n{\"spec\":{\"replicas\":3},\"metadata\":{}}",
    "object.list.all(a, object.list.all(b, object.list.all(c, a + b + c >= 0)))\n{\"list\":[1,2,3,4,5,6,7,8,9,10]}",
    "object.text.replace('', object.text).size() > 0\nabcdefghijklmnopqrstuvwxyz",
    "lists.range(1000000000).map(a, [a, a]).size() > 0\n{}",
    "lists.range(60000).map(a, string(a) + 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa').join(',').split('').size() > 0\n{}",
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.split('').map(a, object.text).join(object.text)\naaaaaaaaaaaaaaaa",
    "object.text.matches(object.text + '{1000}') || object.text.findAll('.').size() > 1\naaaaaaaaaaaaaaaaaaaaaaaaa",
    "{'a': [object, object], ?'b': object.?missing}.a.map(x, [x, x, x]).distinct() == [!!true, --1, 2u, 2.5, null, b'a']\n{}",
    "'%s %d %.2f'.format([object, 1, 2.5]) + string(duration('1h')) + string(timestamp('2026-01-01T00:00:00Z'))\n{\"a\":{}}",
    "quantity('1Gi').add(quantity('1e3')).isGreaterThan(quantity('5m')) ? semver('1.2.3').major() : ip('::1').family()\n{}",
    "['xxxxxxxx'].map(s, s+s+s+s).map(s, s+s+s+s).map(s, s+s+s+s).map(s, s+s+s+s).map(s, s+s+s+s).map(s, s+s+s+s).map(s, s+s+s+s).map(s, s+s+s+s).map(s, s+s+s+s).map(s, s+s+s+s) != []\n{}",
    "[[[[[[[[1,1,1,1]].map(s,s+s+s+s+s)[0]].map(s,s+s+s+s+s)[0]].map(s,s+s+s+s+s)[0]].map(s,s+s+s+s+s)[0]].map(s,s+s+s+s+s)[0]].map(s,s+s+s+s+s)[0]].map(s,s+s+s+s+s)[0] != []\n{}",
    "[1].map(s,[s,s,s,s]).map(s,[s,s,s,s]).map(s,[s,s,s,s]).map(s,[s,s,s,s]).map(s,[s,s,s,s]).map(s,[s,s,s,s]).map(s,[s,s,s,s]).map(s,[s,s,s,s]).map(s,[s,s,s,s]).map(s,optional.of(s)) == [object]\n{}",
    "lists.range(20000).map(a, optional.of(object.text + string(a))).map(a, {'a': a, 'b': [a.value(), a.value()].sum()}) != []\naaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "lists.range(20000).all(a, (object.text + string(a)).size() > 0) && object.text.replace('', object.text).replace('a', object.text) != ''\naaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

/// Objects that make Chandler act for their writer.
pub(super) const DELEGATIONS: &[&str] = &[
    r#"{"apiVersion":"core.rukpak.io/v1alpha2","kind":"BundleDeployment","metadata":{"name":"a"},"spec":{"installNamespace":"shop","source":{"type":"image","image":{"ref":"a:v1","pullSecret":"s"}},"serviceAccount":{"name":"root","namespace":"accounts"}}}"#,
    r#"{"apiVersion":"core.rukpak.io/v1alpha2","kind":"BundleDeployment","metadata":{"name":"a"},"spec":{"installNamespace":"shop","source":{"type":"git","git":{"repository":"https://a/b","ref":{"branch":"main"},"auth":{"secret":{"name":"s"}}},"configMaps":[{"configMap":{"name":"m"}}]}}}"#,
    r#"{"apiVersion":"core.rukpak.io/v1alpha2","kind":"BundleDeployment","metadata":{"name":"a"},"spec":{"installNamespace":"shop","source":{"type":"http","http":{"url":"https://a/b.tgz","auth":{"secret":{"name":"s"}}}},"serviceAccount":null}}"#,
    r#"{"apiVersion":"core.deppy.io/v1alpha1","kind":"Resolution","metadata":{"name":"a"},"spec":{"packages":[{"name":"p"}],"output":{"type":"ResolveSet","resolveSet":{"installNamespace":"shop","namespaces":{"p":"other"},"serviceAccount":{"name":"root"}}}}}"#,
    r#"{"apiVersion":"platform.openshift.io/v1alpha1","kind":"PlatformOperator","metadata":{"name":"a"},"spec":{"package":{"name":"p"},"installNamespace":"kube-system"}}"#,
    r#"{"apiVersion":"chandler.dev/v1alpha1","kind":"Catalog","metadata":{"name":"a"},"spec":{"source":{"type":"image","image":{"ref":"a:v1","pullSecret":"s"}}}}"#,
    r#"{"apiVersion":"chandler.dev/v1alpha1","kind":"ChangeApproval","metadata":{"name":"a"},"spec":{"bundleDeployment":"b","bundleDeploymentUID":"u","change":"c","approvedBy":"me"}}"#,
    r#"{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","metadata":{"name":"a","namespace":"olm"},"spec":{"image":"a:v1"}}"#,
];
