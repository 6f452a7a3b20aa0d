// Many concurrent requests on few connections: others do not wait long, and who sends too many is told so.
import { expect } from 'chai';
import { spaRequest, tenant } from '../support/flows.ts';
import { connect } from '../support/raw.ts';
import { createRequester } from '../support/requester.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { stopwatch } from '../support/timing.ts';
import { UNLIMITED } from '../support/unlimited.ts';

const AUTHORIZE = `/authorize?${new URLSearchParams(spaRequest('x'.repeat(43)))}`;
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
const statuses = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));

describe('pipelined requests', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: { ...tenant, ...UNLIMITED } });
  });
  after(() => server.stop());

  it('are answered in their order when they are few', async () => {
    const connection = await connect(server);
    connection.send(
      get('/healthz') +
        get('/nowhere') +
        `POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}` +
        get('/authorize') +
        get('/.well-known/jwks.json'),
    );
    await connection.has('"keys"', 5_000);
    expect(statuses(connection.text())).to.deep.equal([200, 404, 400, 400, 200]);
    connection.send(get('/healthz'));
    await connection.has(/"keys"[\s\S]*"status":"ok"/, 5_000);
    connection.end();
  });

  it('are answered one after the other, even when a body comes late', async () => {
    const connection = await connect(server);
    const post = `POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20000\r\n\r\n`;
    connection.send(`${get('/healthz')}${post}${' '.repeat(19_000)}`);
    await connection.has('"status":"ok"', 5_000);
    connection.send(`{}${' '.repeat(998)}${get('/healthz')}`);
    await connection.has(/400 Bad Request[\s\S]*"status":"ok"/, 5_000);
    connection.end();
  });

  it('beyond nine on a connection get 503, and the connection ends after the earlier answers', async () => {
    const connection = await connect(server);
    connection.send(get(AUTHORIZE).repeat(100));
    const answer = await connection.closed(10_000);
    expect(statuses(answer)).to.deep.equal([...Array(9).fill(302), 503]);
    const last = answer.slice(answer.lastIndexOf('HTTP/1.1'));
    expect(last)
      .to.match(/\r\nRetry-After: 1\r\n/i)
      .and.match(/\r\nConnection: close\r\n/i);
    expect(last).to.contain('"error":"temporarily_unavailable"');
  });

  it('by the thousands on a connection end it', async () => {
    const before = server.logged().length;
    const connection = await connect(server);
    connection.send('GET /from-the-flood HTTP/1.1\r\nHost:\r\n\r\n'.repeat(5_000));
    await connection.closed(5_000);
    const worked =
      server
        .logged()
        .slice(before)
        .match(/from-the-flood/g) ?? [];
    expect(worked.length).to.be.at.most(9);
  });

  it('of many connections do not delay others', async () => {
    const others = createRequester(server);
    await others.ask('GET', '/healthz');
    const connections = await Promise.all(Array.from({ length: 20 }, () => connect(server)));
    for (const connection of connections) connection.send(get(AUTHORIZE).repeat(100));
    const waits: number[] = [];
    const ends = Promise.all(connections.map((connection) => connection.closed(20_000)));
    let isOver = false;
    void ends.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      const time = stopwatch();
      expect((await others.ask('GET', '/.well-known/jwks.json')).status).to.equal(200);
      waits.push(time());
    }
    for (const answer of await ends) expect(statuses(answer)).to.deep.equal([...Array(9).fill(302), 503]);
    others.close();
    // Handled all at once they took several seconds, in which no other request was answered.
    expect(Math.max(...waits)).to.be.below(1_500);
  });
});
