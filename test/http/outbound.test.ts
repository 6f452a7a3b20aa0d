// Requests to addresses that others name: which are sent, to which address, and how hostile responses are handled.
import { execFile } from 'node:child_process';
import diagnostics from 'node:diagnostics_channel';
import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { inspect, promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import {
  createOutbound,
  isOutboundEntry,
  LOOPBACK_RANGES,
  outboundRules,
  type ResolvedAddress,
} from '../../src/http/outbound/outbound.ts';
import { OutboundError } from '../../src/http/outbound/outbound-error.ts';
import { startServer } from '../support/server.ts';

/** Addresses that do not belong to the public Internet. */
const CLOSED = [
  ...['127.0.0.1', '127.255.255.254', '0.0.0.0', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
  ...['169.254.169.254', '100.64.0.1', '100.100.100.200', '224.0.0.1', '239.1.1.1', '255.255.255.255'],
  ...['192.0.0.192', '192.0.2.1', '198.18.0.1', '240.0.0.1', '168.63.129.16'],
  ...['::', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::127.0.0.1', 'fe80::1', 'fe80::1%lo', 'fc00::1'],
  ...['fd00:ec2::254', 'fec0::1', 'ff02::1', '64:ff9b::127.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b:1::1'],
  ...['2002:7f00:1::', '2001:0:7f00:1::', '2001:db8::1', '100::1', '5f00::1'],
];
const PUBLIC = ['93.184.216.34', '1.1.1.1', '172.32.0.1', '2606:4700::1111', '64:ff9b::101:101'];

type Handler = (request: http.IncomingMessage, response: http.ServerResponse) => void;

async function listen(handler: Handler, host = '127.0.0.1', port = 0) {
  const server = http.createServer(handler);
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('requests to addresses that others name', () => {
  let handle: Handler = (_request, response) => response.end('ok');
  let site: Awaited<ReturnType<typeof listen>>;
  /** The opened sockets. */
  const sockets: Socket[] = [];
  const onSocket = (message: unknown) => void sockets.push((message as { socket: Socket }).socket);
  before(async () => {
    site = await listen((request, response) => handle(request, response));
    diagnostics.subscribe('net.client.socket', onSocket);
  });
  after(async () => {
    diagnostics.unsubscribe('net.client.socket', onSocket);
    await site.stop();
  });
  beforeEach(() => {
    sockets.length = 0;
  });

  const named =
    (names: Record<string, string[]>) =>
    async (host: string): Promise<ResolvedAddress[]> =>
      (names[host] ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  const client = (allow: readonly string[] = LOOPBACK_RANGES, names: Record<string, string[]> = {}) =>
    createOutbound({ rules: outboundRules(allow), lookup: named(names) });
  const at = (path = '/') => `http://127.0.0.1:${site.port}${path}`;
  const failure = async (work: Promise<unknown>) => {
    const thrown = await work.then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(thrown).to.be.instanceOf(OutboundError);
    return (thrown as OutboundError).failure;
  };

  describe('the permitted addresses', () => {
    for (const address of CLOSED) {
      it(`exclude ${address}, by address and by name`, async () => {
        const outbound = client([], { 'name.example': [address] });
        expect(await failure(outbound.fetch('https://name.example/'))).to.equal('refused');
        const host = address.includes(':') ? `[${address.split('%')[0]}]` : address;
        expect(await failure(outbound.fetch(`https://${host}/`))).to.equal('refused');
        expect(sockets).to.deep.equal([]);
      });
    }

    for (const address of PUBLIC) {
      it(`include ${address}, by https only`, async () => {
        const outbound = client([], { 'name.example': [address] });
        expect(await outbound.resolve('name.example')).to.deep.include({ isOpened: false });
        expect(await failure(outbound.fetch('http://name.example/'))).to.equal('refused');
        expect(sockets).to.deep.equal([]);
      });
    }

    for (const host of [
      '0x7f000001',
      '127.1',
      '2130706433',
      '0177.0.0.1',
      '１２７.0.0.1',
      '[::ffff:7f00:1]',
    ]) {
      it(`exclude this machine written as ${host}`, async () => {
        expect(await failure(client([]).fetch(`https://${host}/`))).to.equal('refused');
        expect(sockets).to.deep.equal([]);
      });
    }

    it('exclude other schemes than http and https', async () => {
      for (const address of ['file:///etc/passwd', 'ftp://127.0.0.1/', 'data:text/plain,x']) {
        expect(await failure(client().fetch(address))).to.equal('refused');
      }
    });

    it('exclude addresses with a user or password, which no error quotes', async () => {
      const { port } = site;
      for (const user of ['user:hush-hush@', 'user@', ':hush-hush@']) {
        const error = await client()
          .fetch(`http://${user}127.0.0.1:${port}/`)
          .catch((thrown: unknown) => thrown);
        expect(error).to.be.instanceOf(OutboundError).and.include({ failure: 'refused' });
        expect(inspect(error)).not.to.contain('hush-hush');
      }
      const error = await client()
        .fetch('http://user:hush-hush@127.0.0.1:99999/')
        .catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(TypeError);
      expect(inspect(error)).not.to.contain('hush-hush');
      expect(sockets).to.deep.equal([]);
    });

    it('include the ranges and names that the operator opened, and nothing else', async () => {
      const names = { 'in.example': ['10.1.2.3'], 'other.example': ['10.9.9.9'] };
      expect(await client(['10.1.0.0/16'], names).resolve('in.example')).to.deep.include({ isOpened: true });
      expect(await client(['in.example'], names).resolve('in.example')).to.deep.include({ isOpened: true });
      expect(await failure(client(['10.1.0.0/16'], names).resolve('other.example'))).to.equal('refused');
      expect(await failure(client(['in.example'], names).resolve('10.1.2.3'))).to.equal('refused');
      expect(await failure(client(['10.1.0.0/16']).fetch(at()))).to.equal('refused');
    });

    it('exclude names without an address', async () => {
      expect(await failure(client().fetch('https://nowhere.example/'))).to.equal('unreachable');
    });
  });

  describe('the address connected to', () => {
    it('is the one that was checked, even if the name resolves to another one afterwards', async () => {
      let page = 0;
      const other = await listen((_request, response) => response.end('other'), '127.0.0.2', site.port);
      handle = (_request, response) => response.end('inner');
      const outbound = createOutbound({
        rules: outboundRules(['127.0.0.2']),
        lookup: async () => [{ address: page++ === 0 ? '127.0.0.2' : '127.0.0.1', family: 4 }],
      });
      try {
        const response = await outbound.fetch(`http://rebinding.example:${site.port}/`);
        expect(await response.text()).to.equal('other');
        expect(page).to.equal(1);
        expect(await failure(outbound.fetch(`http://rebinding.example:${site.port}/`))).to.equal('refused');
      } finally {
        await other.stop();
      }
    });

    it('is never a forbidden one of several', async () => {
      const outbound = client(['127.0.0.2'], { 'mixed.example': ['127.0.0.1', '127.0.0.2', '::1'] });
      const { addresses } = await outbound.resolve('mixed.example');
      expect(addresses).to.deep.equal([{ address: '127.0.0.2', family: 4 }]);
    });

    it('is fixed for connections made with the returned lookup', async () => {
      const { lookup } = await client([], { 'dual.example': ['10.0.0.1', '1.1.1.1'] }).resolve(
        'dual.example',
      );
      const all = await promisify(lookup as never)('anything.example', { all: true } as never);
      expect(all).to.deep.equal([{ address: '1.1.1.1', family: 4 }]);
    });
  });

  describe('a response', () => {
    it('is a Response with status, headers and body', async () => {
      handle = (request, response) => {
        const chunks: Buffer[] = [];
        request.on('data', (chunk) => chunks.push(chunk));
        request.on('end', () => {
          response.writeHead(201, { 'content-type': 'application/json', 'set-cookie': ['a=1', 'b=2'] });
          const { method, url, headers } = request;
          response.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString() }));
        });
      };
      const response = await client().fetch(at('/x?y=1'), {
        method: 'POST',
        body: new URLSearchParams({ a: 'ü' }),
        headers: { authorization: 'Bearer t', connection: 'upgrade', host: 'evil.example' },
      });
      expect(response).to.be.instanceOf(Response);
      expect(response).to.deep.include({ status: 201, ok: true, url: at('/x?y=1') });
      expect(response.headers.getSetCookie()).to.deep.equal(['a=1', 'b=2']);
      const seen = (await response.json()) as { headers: object };
      expect(seen).to.deep.include({ method: 'POST', url: '/x?y=1', body: 'a=%C3%BC' });
      expect(seen.headers).to.include({
        host: `127.0.0.1:${site.port}`,
        authorization: 'Bearer t',
        'content-type': 'application/x-www-form-urlencoded;charset=UTF-8',
        'content-length': '8',
        connection: 'close',
      });
    });

    it('is decompressed up to the maximum size', async () => {
      handle = (_request, response) =>
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(300_000)));
      expect((await (await client().fetch(at())).arrayBuffer()).byteLength).to.equal(300_000);
      expect(await failure(client().fetch(at(), { maxBytes: 299_999 }))).to.equal('too-large');
    });

    it('is an error when it is endless, slow or broken', async () => {
      handle = (_request, response) => {
        const write = () => {
          while (response.writable && response.write(Buffer.alloc(65536)));
        };
        response.on('drain', write);
        write();
      };
      expect(await failure(client().fetch(at()))).to.equal('too-large');
      handle = (_request, response) => response.writeHead(200).write('x');
      expect(await failure(client().fetch(at(), { timeout: 100 }))).to.equal('timeout');
      handle = () => {};
      expect(await failure(client().fetch(at(), { timeout: 100 }))).to.equal('timeout');
      handle = (_request, response) => {
        response.writeHead(200, { 'content-length': 10 }).write('x', () => response.destroy());
      };
      expect(await failure(client().fetch(at()))).to.equal('invalid');
      handle = (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('no');
      expect(await failure(client().fetch(at()))).to.equal('invalid');
      handle = (request) => request.socket.end('HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n');
      expect(await failure(client().fetch(at()))).to.equal('invalid');
      handle = (request) => request.socket.end('no HTTP');
      expect(await failure(client().fetch(at()))).to.equal('unreachable');
    });

    it('is not awaited after an abort, or when the name server is too slow', async () => {
      handle = () => {};
      const reason = new Error('no longer');
      const abort = new AbortController();
      const waiting = client().fetch(at(), { signal: abort.signal });
      abort.abort(reason);
      expect(await waiting.catch((thrown: unknown) => thrown)).to.equal(reason);
      const slow = createOutbound({ rules: outboundRules([]), lookup: () => new Promise(() => {}) });
      expect(await failure(slow.fetch('https://slow.example/', { timeout: 50 }))).to.equal('timeout');
    });

    it('has no body when only the head was requested', async () => {
      handle = (_request, response) => response.writeHead(200).write('endless');
      const response = await client().fetch(at(), { headOnly: true });
      expect(response).to.deep.include({ status: 200, body: null });
    });
  });

  describe('a redirect', () => {
    it('is not followed to a forbidden address', async () => {
      for (const location of [
        'http://10.0.0.1/',
        'https://169.254.169.254/latest',
        'http://[::1]:1/',
        '//192.168.0.1',
      ]) {
        handle = (_request, response) => response.writeHead(302, { location }).end();
        expect(await failure(client(['127.0.0.1']).fetch(at()))).to.equal('refused');
      }
      expect(sockets).to.have.length(4);
    });

    it('is followed five times, not six', async () => {
      handle = (request, response) => {
        const left = Number(request.url?.slice(1));
        if (left === 0) response.end('there');
        else response.writeHead(307, { location: `/${left - 1}` }).end();
      };
      expect(await (await client().fetch(at('/5'))).text()).to.equal('there');
      expect(await failure(client().fetch(at('/6')))).to.equal('redirects');
      expect((await client().fetch(at('/1'), { redirect: 'manual' })).status).to.equal(307);
      expect(await failure(client().fetch(at('/1'), { redirect: 'error' }))).to.equal('redirects');
    });

    it('carries no credentials to another origin, and no body when it becomes a GET', async () => {
      const seen: [string | undefined, string | undefined, string | undefined][] = [];
      const note: Handler = (request, response) => {
        seen.push([request.method, request.headers.authorization, request.headers['content-length']]);
        response.end();
      };
      const other = await listen(note);
      const post = { method: 'POST', body: 'secret', headers: { authorization: 'Bearer t' } };
      handle = (request, response) => {
        if (request.url === '/there') note(request, response);
        else response.writeHead(Number(request.url?.slice(1, 4)), { location: request.url?.slice(5) }).end();
      };
      try {
        await client().fetch(at('/303?/there'), post);
        await client().fetch(at('/307?/there'), post);
        await client().fetch(at(`/307?http://127.0.0.1:${other.port}/`), post);
        expect(seen).to.deep.equal([
          ['GET', 'Bearer t', undefined],
          ['POST', 'Bearer t', '6'],
          ['POST', undefined, '6'],
        ]);
      } finally {
        await other.stop();
      }
    });
  });

  it('ignore the proxy settings of the environment', async () => {
    let proxied = 0;
    const proxy = await listen((_request, response) => {
      proxied++;
      response.end('proxied');
    });
    handle = (_request, response) => response.end('direct');
    const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY', 'NODE_USE_ENV_PROXY'];
    const script = `
      const { createOutbound } = await import(${JSON.stringify(new URL('../../src/http/outbound/outbound.ts', import.meta.url).href)});
      const outbound = createOutbound({ rules: { isOpened: () => true, mayConnect: () => true } });
      console.log(await (await outbound.fetch(${JSON.stringify(at())})).text());`;
    const env = Object.fromEntries(
      names.map((name) => [name, name.startsWith('NODE') ? '1' : `http://127.0.0.1:${proxy.port}`]),
    );
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      env: { ...process.env, ...env },
    });
    await proxy.stop();
    expect([stdout.trim(), proxied]).to.deep.equal(['direct', 0]);
  });

  it('trust the authorities of NODE_EXTRA_CA_CERTS, and no other private ones', async () => {
    const server = await startServer({ tenant: {} });
    const script = `
      const { createOutbound } = await import(${JSON.stringify(new URL('../../src/http/outbound/outbound.ts', import.meta.url).href)});
      const outbound = createOutbound({ rules: { isOpened: () => true, mayConnect: () => true } });
      console.log(await outbound.fetch(${JSON.stringify(`${server.url}/healthz`)}).then((r) => r.status, (e) => e.failure));`;
    const run = async (env: object) => {
      const args = ['--input-type=module', '-e', script];
      return (
        await promisify(execFile)(process.execPath, args, { env: { ...process.env, ...env } })
      ).stdout.trim();
    };
    try {
      expect(await run({ NODE_EXTRA_CA_CERTS: server.caFile })).to.equal('200');
      expect(await run({ NODE_EXTRA_CA_CERTS: '' })).to.equal('unreachable');
    } finally {
      await server.stop();
    }
  });

  it('can be permitted for names, addresses and ranges only', () => {
    for (const right of [
      'localhost',
      'idp.corp.example',
      'a_b.example',
      '10.0.0.0/8',
      '10.1.2.3',
      '::1',
      'fd00::/8',
    ]) {
      expect(isOutboundEntry(right), right).to.equal(true);
    }
    const wrong = [
      '',
      'http://a.example',
      'a.example:443',
      'a.example/x',
      '*.example',
      '10.0.0.0/33',
      '127.1',
      '[::1]',
    ];
    for (const text of [
      ...wrong,
      '0x7f000001',
      '10.0.0',
      '::ffff:10.0.0.0/104',
      'fe80::1%eth0',
      'a b',
      'ä.example',
    ]) {
      expect(isOutboundEntry(text), text).to.equal(false);
    }
  });
});
