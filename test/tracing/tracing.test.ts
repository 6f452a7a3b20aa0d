// Traces: spans of requests, of the store and of outbound requests, if an SDK is registered; otherwise none.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { isTracingEnabled } from '../../src/runtime/tracing.ts';
import { createAgent } from '../support/agent.ts';
import { builtProgram } from '../support/built.ts';
import { runServer } from '../support/process.ts';

const SDK = fileURLToPath(new URL('sdk.ts', import.meta.url));
const PARENT = { traceId: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', spanId: 'bbbbbbbbbbbbbbbb' };
const TRACEPARENT = `00-${PARENT.traceId}-${PARENT.spanId}-01`;

interface Span {
  name: string;
  traceId: string;
  spanId: string;
  parent?: string;
  attributes: Record<string, unknown>;
  status?: number;
}

describe('traces', () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-tracing-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  const run = async (env: Record<string, string>, hasSdk = true) =>
    runServer({
      cwd,
      env: { LOG_LEVEL: 'debug', SPANS: join(cwd, 'spans'), ...env },
      command: [process.execPath, ...(hasSdk ? ['--import', SDK] : []), await builtProgram()],
    });
  const spans = () =>
    readFileSync(join(cwd, 'spans'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Span);
  const ON = { OTEL_TRACES_EXPORTER: 'otlp' };

  it('have requests by their routes, with the store below them, and nothing that a client sent', async () => {
    const server = await run(ON);
    const agent = createAgent(server);
    await agent.get('/authorize?client_id=of-a-stranger&response_type=code', { traceparent: TRACEPARENT });
    await agent.request('/no/such-path', { method: 'PROPFIND' });
    const line = await server.line((one) => one.includes('"path":"/authorize"'));
    await server.end('SIGTERM');
    const all = spans();
    const request = all.find(({ name }) => name === 'GET /authorize');
    expect(request?.attributes).to.deep.include({ 'http.request.method': 'GET', 'http.route': '/authorize' });
    // Clients cannot choose the trace: they could have every request collected.
    expect(request?.parent).to.equal(undefined);
    expect(all.some(({ name }) => name === '_OTHER none')).to.equal(true);
    const below = all.filter(
      ({ traceId, name }) => traceId === request?.traceId && name.startsWith('store.'),
    );
    expect(JSON.parse(line)).to.include({ trace_id: request?.traceId, span_id: request?.spanId });
    const stored = all.filter(({ name }) => name.startsWith('store.'));
    expect(stored.every(({ attributes }) => attributes['db.operation.name'] !== undefined)).to.equal(true);
    expect(below.every(({ parent }) => parent !== undefined)).to.equal(true);
    expect(JSON.stringify(all))
      .not.to.contain('of-a-stranger')
      .and.not.contain('PROPFIND')
      .and.not.contain('such-path');
  });

  it('continue that of a trusted proxy', async () => {
    const server = await run({
      ...ON,
      TLS: 'proxy',
      TRUSTED_PROXIES: '127.0.0.1',
      BASE_URL: 'https://id.example.test',
    });
    const port = JSON.parse(server.lines.find((one) => one.includes('"msg":"listening"')) ?? '{}').port;
    await fetch(`http://127.0.0.1:${port}/readyz`, {
      headers: { traceparent: TRACEPARENT, 'x-forwarded-proto': 'https' },
    });
    await server.end('SIGTERM');
    const request = spans().find(({ name }) => name === 'GET /readyz');
    expect(request).to.include({ traceId: PARENT.traceId, parent: PARENT.spanId });
    const below = spans().find(({ name }) => name === 'store.ready');
    expect(below).to.include({ traceId: PARENT.traceId, parent: request?.spanId });
  });

  it('begin anew with a probe that does not come from the proxy', async () => {
    const server = await run({
      ...ON,
      TLS: 'proxy',
      TRUSTED_PROXIES: '192.0.2.1',
      BASE_URL: 'https://id.example.test',
    });
    const port = JSON.parse(server.lines.find((one) => one.includes('"msg":"listening"')) ?? '{}').port;
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { headers: { traceparent: TRACEPARENT } });
    expect(answer.status).to.equal(200);
    await server.end('SIGTERM');
    const request = spans().find(({ name }) => name === 'GET /readyz');
    expect(request?.parent).to.equal(undefined);
    expect(request?.traceId).to.be.a('string').and.not.equal(PARENT.traceId);
  });

  it('are not made when the environment does not ask for them', async () => {
    const server = await run({ OTEL_SDK_DISABLED: 'true', ...ON });
    await createAgent(server).get('/readyz');
    const line = await server.line((one) => one.includes('"path":"/readyz"'));
    await server.end('SIGTERM');
    expect(existsSync(join(cwd, 'spans'))).to.equal(false);
    expect(JSON.parse(line)).not.to.have.property('trace_id');
  });

  it('cause a warning when no SDK is registered, and the server serves', async () => {
    const server = await run(ON, false);
    expect((await createAgent(server).get('/readyz')).status).to.equal(200);
    await server.line((one) => one.includes('no SDK of OpenTelemetry is registered'));
    expect(await server.end('SIGTERM')).to.equal(0);
  });

  it('use the API that SDKs register with: a newer version would take none of them', () => {
    const lock = readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8');
    const { version } = JSON.parse(lock).packages['node_modules/@opentelemetry/api'] as { version: string };
    expect(version).to.match(/^1\.[4-9]\./);
  });

  it('are requested in the words of the specification', () => {
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
    expect(isTracingEnabled({})).to.equal(false);
    expect(isTracingEnabled(endpoint)).to.equal(true);
    expect(isTracingEnabled({ ...endpoint, OTEL_SDK_DISABLED: 'True' })).to.equal(false);
    expect(isTracingEnabled({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' })).to.equal(false);
    expect(isTracingEnabled({ OTEL_TRACES_EXPORTER: '' })).to.equal(false);
  });
});
