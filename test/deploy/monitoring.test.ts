// The dashboard and the alerts in deploy/: their queries are PromQL, and ask for metrics and labels that the server has.
// That the alerts fire is tested in test/runbooks, with a real Prometheus.
import { existsSync, readFileSync } from 'node:fs';
import {
  Identifier,
  LabelName,
  parser,
  StringLiteral,
  UnquotedLabelMatcher,
  VectorSelector,
} from '@prometheus-io/lezer-promql';
import { expect } from 'chai';
import { parse } from 'yaml';
import { createMetrics } from '../../src/features/metrics/registry.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

interface Selector {
  metric: string;
  labels: { name: string; value: string }[];
}

/** Returns the selectors of a query. @throws Error when it is not PromQL. */
function selectors(query: string): Selector[] {
  // Grafana replaces this before Prometheus sees it.
  const text = query.replaceAll('$__rate_interval', '5m');
  const found: Selector[] = [];
  parser.parse(text).iterate({
    enter: ({ type, from, to, node }) => {
      if (type.isError) throw new Error(`not PromQL at ${from}: ${text}`);
      if (type.id !== VectorSelector) return;
      const name = node.getChild(Identifier);
      const labels: Selector['labels'] = [];
      node.cursor().iterate((inner) => {
        if (inner.type.id !== UnquotedLabelMatcher) return;
        const [label, value] = [inner.node.getChild(LabelName), inner.node.getChild(StringLiteral)];
        labels.push({
          name: text.slice(label?.from, label?.to),
          value: text.slice((value?.from ?? 0) + 1, (value?.to ?? 0) - 1),
        });
      });
      found.push({ metric: text.slice(name?.from ?? from, name?.to ?? to), labels });
    },
  });
  return found;
}

/** What Prometheus adds to each series. */
const OF_PROMETHEUS = ['job', 'instance'];

describe('monitoring', () => {
  /** The labels of each metric. */
  let known: Map<string, readonly string[]>;
  before(async () => {
    const metrics = createMetrics('test');
    metrics.read({
      signingKeys: async () => [{ alg: 'RS256', age: 1 }],
      hashQueue: () => 0,
      deliveries: async () => 0,
      failingStreams: async () => 0,
    });
    // Each is measured once, so that its labels are there.
    const { measures } = metrics;
    measures.requestBegan();
    measures.requestEnded({ method: 'GET', route: '/readyz', status: 200 }, 0);
    measures.event('s', 'auth0');
    measures.tokensIssued('password');
    measures.hashed(0, 0);
    measures.storeOperation('get', 0);
    measures.limited('token');
    measures.streamed(1, false);
    measures.message('reset_email', 'email', 'sent');
    measures.messageTryFailed('email');
    known = new Map([['up', []]]);
    for (const [, name = '', , labels = ''] of (await metrics.text()).matchAll(/^(\w+)(\{(.*)\})? \S+$/gm))
      known.set(
        name,
        [...labels.matchAll(/(\w+)="/g)].map(([, label = '']) => label),
      );
  });

  function expectKnown(query: string, what: string): Selector[] {
    const all = selectors(query);
    expect(all, what).not.to.have.length(0);
    for (const { metric, labels } of all) {
      const has = known.get(metric);
      expect(has, `${what}: ${metric}`).to.be.an('array');
      for (const { name } of labels)
        expect([...(has ?? []), ...OF_PROMETHEUS], `${what}: ${metric}{${name}}`).to.include(name);
    }
    return all;
  }

  it('has a dashboard of metrics and labels that exist, with the unit of each', () => {
    const { panels } = JSON.parse(read('deploy/grafana/gatehouse.json'));
    expect(panels.length).to.be.above(20);
    for (const { title, targets, fieldConfig } of panels) {
      const { unit } = fieldConfig.defaults;
      for (const { expr } of targets) {
        for (const { metric, labels } of expectKnown(expr, title)) {
          // The choice of processes holds for every panel.
          expect(labels, title).to.deep.include({ name: 'instance', value: '$instance' });
          const isRate = /\brate\(/.test(expr);
          if (metric.endsWith('_bytes')) expect(unit, title).to.equal('bytes');
          else if (metric === 'process_cpu_seconds_total') expect(unit, title).to.equal('percentunit');
          else if (/_seconds(?:_bucket)?$/.test(metric)) expect(unit, title).to.equal('s');
          else if (isRate) expect(unit, title).to.be.oneOf(['reqps', 'eps', 'mps']);
          else expect(unit, title).to.equal('short');
          if (/_(?:total|bucket|count|sum)$/.test(metric)) expect(isRate, `${title}: rate`).to.equal(true);
        }
      }
    }
    const ids = panels.map(({ id }: { id: number }) => id);
    expect(new Set(ids).size).to.equal(ids.length);
  });

  it('has panels that do not overlap', () => {
    const { panels } = JSON.parse(read('deploy/grafana/gatehouse.json'));
    const places = panels.flatMap(({ gridPos: { x, y, w, h } }: { gridPos: Record<string, number> }) =>
      Array.from(
        { length: Number(w) * Number(h) },
        (_, i) => `${Number(x) + (i % Number(w))},${Number(y) + Math.floor(i / Number(w))}`,
      ),
    );
    expect(new Set(places).size).to.equal(places.length);
  });

  it('has alerts on metrics and labels that exist, each with an explanation and the page that says what to do', () => {
    const { groups } = parse(read('deploy/prometheus/alerts.yaml'));
    const rules = groups.flatMap((group: { rules: object[] }) => group.rules);
    expect(rules.length).to.be.above(8);
    const index = read('docs/do/runbooks/README.md');
    for (const { alert, expr, labels, annotations } of rules) {
      expectKnown(expr, alert);
      expect(labels.severity, alert).to.be.oneOf(['critical', 'warning', 'info']);
      expect(annotations.summary, alert).to.be.a('string');
      const [page = '', heading] = String(annotations.runbook).split('#');
      expect(existsSync(new URL(`../../${page}`, import.meta.url)), `${alert}: ${page}`).to.equal(true);
      if (heading === undefined) expect(read(page), `${page} names its alert`).to.contain(`\`${alert}\``);
      else expect(read(page)).to.match(new RegExp(`^#+ ${alert}$`, 'm'));
      expect(index, 'the index of the runbooks').to.contain(alert);
    }
  });

  it('has every metric of ours in the documents', () => {
    const documented = read('docs/do/metrics.md');
    for (const name of known.keys()) {
      const [base = ''] = name.split(/_(?:bucket|sum|count)$/);
      if (name.startsWith('gatehouse_')) expect(documented, base).to.contain(`\`${base}\``);
    }
  });
});
