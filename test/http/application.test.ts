import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';

const run = promisify(execFile);

/** Requests bodies of all kinds from an application in a separate process. */
const SCRIPT = `
import { Readable } from 'node:stream';
import Koa from 'koa';
// Imported, it would load the client itself.
const http = process.getBuiltinModule('node:http');
const answers = async (app) => {
  app.use((ctx) => {
    switch (ctx.path) {
      case '/object': ctx.body = { a: 'é', b: [1] }; break;
      case '/array': ctx.body = [1, 2]; break;
      case '/bare': ctx.body = Object.assign(Object.create(null), { a: 1 }); break;
      case '/frozen': ctx.body = Object.freeze({ a: 1 }); break;
      case '/typed': ctx.type = 'application/scim+json'; ctx.body = { a: 1 }; break;
      case '/text-type': ctx.type = 'text/plain'; ctx.body = { a: 1 }; break;
      case '/status': ctx.status = 403; ctx.body = { a: 1 }; break;
      case '/nothing': ctx.status = 204; ctx.body = { a: 1 }; break;
      case '/changed': ctx.body = { a: 1 }; Object.assign(ctx.body, { b: 2 }); break;
      case '/again': ctx.body = 'some text'; ctx.body = { a: 1 }; break;
      case '/after-stream': ctx.body = Readable.from(['x']); ctx.body = { a: 1 }; break;
      case '/stream': ctx.body = Readable.from(['x']); break;
      case '/text': ctx.body = { a: 1 }; ctx.body = '<p>'; break;
      case '/null': ctx.body = { a: 1 }; ctx.body = null; break;
    }
  });
  const server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const ask = (method, path) => new Promise((resolve, reject) => {
    http.request({ port: server.address().port, host: '127.0.0.1', method, path, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part) => { text += part; }).on('end', () => {
        const { date, ...headers } = answer.headers;
        resolve([method + ' ' + path, answer.statusCode, headers, text]);
      });
    }).on('error', reject).end();
  });
  const all = [];
  for (const path of ['object', 'array', 'bare', 'frozen', 'typed', 'text-type', 'status', 'nothing', 'changed', 'again', 'after-stream', 'text', 'null', 'stream']) {
    all.push(await ask('GET', '/' + path), await ask('HEAD', '/' + path));
    if (path === 'null') all.hasClient = process.moduleLoadList.includes('NativeModule internal/deps/undici/undici');
  }
  server.close();
  return all;
};
const { createApplication } = await import('./src/http/server/application.ts');
const ours = await answers(createApplication(console));
const koa = await answers(new Koa());
console.log(JSON.stringify({ ours, koa, hasClient: ours.hasClient, koaHas: koa.hasClient }));
`;

describe('the Koa application', () => {
  it('answers as Koa does, without loading the fetch client', async () => {
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', SCRIPT]);
    const { ours, koa, hasClient, koaHas } = JSON.parse(stdout) as Record<string, unknown>;
    expect(ours).to.deep.equal(koa);
    expect({ hasClient, koaHas }).to.deep.equal({ hasClient: false, koaHas: true });
  });
});
