// The engine answers only requests that came through its entrance.
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import Koa from 'koa';
import mount from 'koa-mount';
import Provider, { type Adapter, type JWK } from 'oidc-provider';
import { engineEntrance } from '../../src/engine/base/entrance.ts';
import { oauthShape, toAuthError } from '../../src/http/errors.ts';
import { createLog } from '../../src/runtime/log.ts';

describe('the engine', () => {
  let server: http.Server;
  let url: string;
  before(async () => {
    // The default configuration warns on the console about settings that none of these requests reaches.
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const provider = new Provider('https://issuer.example', {
      clients: [],
      adapter: () => ({}) as Adapter,
      jwks: { keys: [privateKey.export({ format: 'jwk' }) as JWK] },
      features: { devInteractions: { enabled: false } },
    });
    const enter = engineEntrance(
      provider,
      () => undefined,
      () => undefined,
    );
    const beside = mount(provider);
    const app = new Koa();
    app.use((ctx, next) =>
      next().catch((thrown: unknown) => oauthShape(ctx, toAuthError(thrown, createLog('silent')))),
    );
    app.use(async (ctx, next) => {
      if (ctx.get('X-Way') === 'entrance') return enter(ctx);
      if (ctx.get('X-Way') === 'twice') {
        await enter(ctx);
        ctx.status = 404;
        return beside(ctx, next);
      }
      return beside(ctx, next);
    });
    server = http.createServer(app.callback());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => server.close());

  const ask = (path: string, way: string) => fetch(url + path, { headers: { 'x-way': way } });

  it('answers a request that comes through its entrance', async () => {
    expect((await ask('/.well-known/openid-configuration', 'entrance')).status).to.equal(200);
  });

  for (const path of [
    '/.well-known/openid-configuration',
    '/auth',
    '/AUTH',
    '/auth/',
    '/token',
    '/nowhere',
  ]) {
    it(`answers 404 to a request that bypasses it: ${path}`, async () => {
      const answer = await ask(path, 'beside');
      expect([answer.status, await answer.json()]).to.deep.equal([
        404,
        { error: 'not_found', error_description: 'There is nothing here.' },
      ]);
    });
  }

  it('answers an admitted request once', async () => {
    expect((await ask('/.well-known/openid-configuration', 'twice')).status).to.equal(404);
  });
});
