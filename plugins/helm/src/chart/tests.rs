use chandler_go_template::Map;

use super::{dependencies::process, *};
use crate::json;

fn chart(files: &[(&str, &str)]) -> Chart {
    load(files.iter().map(|(name, text)| File::new(*name, text.as_bytes())).collect(), Limits::default()).unwrap()
}

fn shown(map: &Map) -> String {
    json::write(&map.clone().into(), None, false).unwrap()
}

const PARENT: &str = "apiVersion: v2\nname: parent\nversion: 1.0.0\n";

#[test]
fn null_deletes_a_default_and_globals_reach_subcharts() {
    let chart = chart(&[
        ("Chart.yaml", PARENT),
        ("values.yaml", "a: {x: 1, yy: 2}\nb: 1\nglobal: {g: {h: 1}}\nsub: {v: 3}\n"),
        ("charts/sub/Chart.yaml", "name: sub\nversion: 1.0.0\n"),
        ("charts/sub/values.yaml", "v: 1\nw: 2\nglobal: {g: {i: 2}}\n"),
    ]);
    let given = values::read("a: {x: null, z: null}\nb: null\nnn: null\nsub: {w: null}\n").unwrap();
    let values = values::coalesce(&chart, &given).unwrap();
    assert_eq!(
        shown(&values),
        r#"{"a":{"yy":2,"z":null},"global":{"g":{"h":1}},"nn":null,"sub":{"global":{"g":{"h":1,"i":2}},"v":3}}"#
    );
}

#[test]
fn a_null_over_a_null_stays_below_the_top() {
    let chart = chart(&[("Chart.yaml", PARENT), ("values.yaml", "a: {x: null, y: 1, in: {z: null}}\nb: null\n")]);
    let given = values::read("a: {x: null, y: null, in: {z: null}}\nb: null\n").unwrap();
    let values = values::coalesce(&chart, &given).unwrap();
    assert_eq!(shown(&values), r#"{"a":{"in":{"z":null},"x":null}}"#);
}

#[test]
fn conditions_decide_before_tags_and_aliases_are_charts() {
    let declared = "dependencies:\n- {name: sub, version: 1.x.x, condition: 'one.enabled', alias: one, tags: [t]}\n- {name: sub, version: '*', alias: two, tags: [t]}\n- {name: gone, version: ^9, repository: x}\n";
    let mut parsed = chart(&[
        ("Chart.yaml", &format!("{PARENT}{declared}")),
        ("values.yaml", "tags: {t: false}\none: {enabled: true}\n"),
        ("charts/sub/Chart.yaml", "name: sub\nversion: 1.2.3\n"),
        ("charts/other/Chart.yaml", "name: other\nversion: 0.1.0\n"),
    ]);
    process(&mut parsed, &Map::new()).unwrap();
    let names: Vec<_> = parsed.dependencies.iter().map(Chart::name).collect();
    assert_eq!(names, ["other", "one"]);
}

#[test]
fn values_are_imported_below_the_chart_s_own() {
    let declared =
        "dependencies:\n- name: sub\n  version: 1.0.0\n  import-values: [data, {child: in.ner, parent: to.here}]\n";
    let mut parsed = chart(&[
        ("Chart.yaml", &format!("{PARENT}{declared}")),
        ("values.yaml", "port: 1\n"),
        ("charts/sub/Chart.yaml", "name: sub\nversion: 1.0.0\n"),
        ("charts/sub/values.yaml", "exports: {data: {port: 2, host: h}}\nin: {ner: {k: v}}\n"),
    ]);
    process(&mut parsed, &Map::new()).unwrap();
    let values = values::coalesce(&parsed, &Map::new()).unwrap();
    assert_eq!(shown(&values.get("to").unwrap().as_map().unwrap().clone()), r#"{"here":{"k":"v"}}"#);
    assert_eq!(values.get("host").unwrap().as_string().unwrap().text(), "h");
    assert!(shown(&values).contains(r#""port":1"#));
}

#[test]
fn wrong_charts_are_refused_with_helm_s_text() {
    for (files, text) in [
        (vec![("values.yaml", "")], "Chart.yaml file is missing"),
        (vec![("Chart.yaml", "name: a\n")], "validation: chart.metadata.version is required"),
        (vec![("Chart.yaml", "name: a\nversion: x\n")], "validation: chart.metadata.version \"x\" is invalid"),
        (
            vec![("Chart.yaml", "name: [a]\n")],
            "cannot load Chart.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go struct field Metadata.name of type string",
        ),
        (
            vec![("Chart.yaml", PARENT), ("charts/a/x", "")],
            "error unpacking subchart a in parent: Chart.yaml file is missing",
        ),
    ] {
        let files = files.into_iter().map(|(name, text)| File::new(name, text.as_bytes())).collect();
        assert_eq!(load(files, Limits::default()).unwrap_err().to_string(), text);
    }
}

#[test]
fn an_archive_is_a_subchart() {
    let mut tar = Vec::new();
    for (name, text) in [("sub/Chart.yaml", "name: sub\nversion: 0.1.0\n"), ("sub/templates/a.yaml", "a: b\n")] {
        let mut head = vec![0; 512];
        head[..name.len()].copy_from_slice(name.as_bytes());
        let size = format!("{:011o}", text.len());
        head[124..135].copy_from_slice(size.as_bytes());
        head[156] = b'0';
        tar.extend_from_slice(&head);
        let mut data = text.as_bytes().to_vec();
        data.resize(512, 0);
        tar.extend_from_slice(&data);
    }
    tar.resize(tar.len() + 1024, 0);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &tar).unwrap();
    let packed = packed.finish().unwrap();
    let files = vec![File::new("Chart.yaml", PARENT.as_bytes()), File::new("charts/sub-0.1.0.tgz", packed.clone())];
    let parsed = load(files.clone(), Limits::default()).unwrap();
    assert_eq!(parsed.dependencies[0].templates[0].name, "templates/a.yaml");
    let few = Limits { bytes: 60 + packed.len(), ..Limits::default() };
    assert!(load(files, few).unwrap_err().to_string().contains("more than"));
}
