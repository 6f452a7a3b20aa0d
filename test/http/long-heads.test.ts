// Requests whose head is too long: mostly the cookies of other applications on localhost.

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { tenant } from '../support/flows.ts';
import { connect } from '../support/raw.ts';
import { startServer, type TestServer } from '../support/server.ts';

async function ask(server: TestServer, cookieBytes: number) {
  const request = https.request(`${server.localUrl.replace('id.example.test', 'localhost')}/healthz`, {
    ca: server.ca,
    servername: 'localhost',
    rejectUnauthorized: false,
    maxHeaderSize: 1024 * 1024,
    headers: { cookie: `other=${'x'.repeat(cookieBytes)}` },
  });
  request.end();
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  return { status: answer.statusCode, type: answer.headers['content-type'], text: await text(answer) };
}

describe('a request with many cookies', () => {
  it('is answered on the machine of a developer, where all applications share those of localhost', async () => {
    const server = await startServer({ tenant });
    try {
      expect(await ask(server, 100 * 1024)).to.include({ status: 200 });
      const refused = await ask(server, 140 * 1024);
      expect(refused).to.include({ status: 431, type: 'text/plain; charset=utf-8' });
      expect(refused.text).to.contain('longer than 128 KiB').and.contain('cookies');
    } finally {
      await server.stop();
    }
  });

  it('is refused with a reason elsewhere', async () => {
    const server = await startServer({ tenant, env: { BASE_URL: 'https://id.example.test' } });
    try {
      const refused = await ask(server, 20 * 1024);
      expect(refused).to.include({ status: 431 });
      expect(refused.text).to.contain('longer than 16 KiB');
    } finally {
      await server.stop();
    }
  });

  it('leaves other requests that cannot be read without a text', async () => {
    const server = await startServer({ tenant });
    try {
      const raw = await connect(server);
      raw.send('NO HTTP AT ALL\r\n\r\n');
      const answer = await raw.closed(5_000);
      expect(answer)
        .to.match(/^HTTP\/1\.1 400 Bad Request\r\n/)
        .and.match(/Content-Length: 0\r\n\r\n$/);
    } finally {
      await server.stop();
    }
  });
});
