// `gatehouse doctor`: its findings, its exit code, and that it changes nothing.
import 'reflect-metadata';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import * as x509 from '@peculiar/x509';
import { expect } from 'chai';
import { runCommand } from '../support/command.ts';
import { freePort } from '../support/free-port.ts';
import { CLI, runToEnd } from '../support/process.ts';
import { serveFolder } from '../support/server.ts';
import { startMailServer } from '../support/smtp.ts';
import { startTwilio, TWILIO } from '../support/twilio.ts';

interface Finding {
  check: string;
  verdict: string;
  text: string;
}

const KEYS = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const DAY = 86_400_000;

describe('gatehouse doctor', () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-doctor-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  const found = async (env: Record<string, string> = {}) => {
    const { code, stdout } = await runCommand({ cwd, env, args: ['doctor', '--json'] });
    return { code, stdout, findings: JSON.parse(stdout) as Finding[] };
  };
  const of = (findings: Finding[], check: string) => findings.filter((one) => one.check === check);

  it('finds nothing wrong in an empty folder, and leaves it empty', async () => {
    const { code, stdout } = await runToEnd({ cwd, command: [process.execPath, CLI, 'doctor'] });
    expect(code).to.equal(0);
    expect(stdout)
      .to.contain('the first start makes it')
      .and.match(/^ok {7}settings: /m);
    for (const line of stdout.trimEnd().split('\n')) expect(line).to.match(/^(ok|warning) +[\w -]+: \S/);
    expect(readdirSync(cwd)).to.deep.equal([]);
  });

  it('names each fault of the settings without quoting values', async () => {
    const { code, findings, stdout } = await found({
      TLS: 'maybe',
      SECRETS_KEY: 'not-a-key',
      SMTP_URL: 'http://user:hunter2@mail',
    });
    expect(code).to.equal(1);
    expect(findings.every(({ verdict, check }) => verdict === 'fault' && check === 'settings')).to.equal(
      true,
    );
    expect(findings.map(({ text }) => text.split(':')[0])).to.include.members([
      'TLS',
      'SECRETS_KEY',
      'SMTP_URL',
    ]);
    expect(stdout).not.to.contain('hunter2').and.not.contain('not-a-key');
  });

  it('names the faults of the tenant file with their lines', async () => {
    writeFileSync(join(cwd, 'tenant.yaml'), 'clients:\n  - { client_id: x }\n');
    const { code, findings } = await found({ TENANT_FILE: 'tenant.yaml' });
    expect(code).to.equal(1);
    const [fault] = of(findings, 'tenant file');
    expect(fault?.verdict).to.equal('fault');
    expect(fault?.text).to.match(/^clients\.0\.name: .+ \(tenant\.yaml:2\)$/);
  });

  it('asks the running server, which has the store open', async () => {
    const server = await serveFolder(cwd);
    try {
      const { code, findings } = await found();
      expect(of(findings, 'database')[0]).to.include({ verdict: 'ok' });
      expect(of(findings, 'signing keys')[0]?.text).to.match(/^RS256: \d+ days old/);
      expect(of(findings, 'clock')[0]).to.include({ verdict: 'ok' });
      expect(code).to.equal(0);
    } finally {
      await server.stop();
    }
    // The same without a running server.
    const { findings } = await found();
    expect(of(findings, 'database')[0]).to.include({ verdict: 'ok' });
  });

  it('finds a damaged store, and a database that does not answer', async () => {
    await (await serveFolder(cwd)).stop();
    writeFileSync(join(cwd, 'data/store/gatehouse.db'), 'no database');
    const damaged = await found();
    expect(damaged.code).to.equal(1);
    expect(of(damaged.findings, 'database')[0]).to.include({ verdict: 'fault' });
    const gone = await found({ DATABASE_URL: `postgres://user:hunter2@127.0.0.1:${await freePort()}/db` });
    expect(gone.code).to.equal(1);
    expect(of(gone.findings, 'database')[0]).to.include({ verdict: 'fault' });
    expect(gone.stdout).not.to.contain('hunter2');
  });

  it('says why a directory cannot be asked', async () => {
    const port = await freePort();
    const options = { LDAP_URL: `ldap://127.0.0.1:${port}`, LDAP_STARTTLS: false, LDAP_BASE: 'dc=example' };
    const tenant = { clients: [], connections: [{ name: 'corp', strategy: 'ad', options }] };
    writeFileSync(join(cwd, 'tenant.yaml'), JSON.stringify(tenant));
    const { findings } = await found({ TENANT_FILE: 'tenant.yaml' });
    const [finding] = of(findings, 'directories');
    expect(finding?.verdict).to.equal('fault');
    expect(finding?.text).to.contain('nobody can log in with corp now').and.contain('ECONNREFUSED');
  });

  it('reports a damaged local CA, and goes on with the other checks', async () => {
    await (await serveFolder(cwd)).stop();
    writeFileSync(join(cwd, 'data/tls/ca.pem'), 'no certificate');
    const { code, findings } = await found();
    expect(code).to.equal(1);
    expect(of(findings, 'certificate')).to.have.length(1);
    expect(of(findings, 'certificate')[0]?.verdict).to.equal('fault');
    expect(of(findings, 'certificate')[0]?.text).to.contain('ca.pem is no certificate in PEM');
    expect(of(findings, 'database')[0]).to.include({ verdict: 'ok' });
  });

  it('finds old keys, events of the future, and suspended log streams', async () => {
    const server = await serveFolder(cwd);
    const { store } = server;
    const collection = store.collection('signingKeys');
    for (const { id } of await collection.findBy('state', 'current'))
      await collection.update(id, (key) => ({ ...key, createdAt: Date.now() / 1000 - 181 * 86_400 }));
    const date = new Date(Date.now() + DAY).toISOString();
    await store.collection('logs').insert({ id: '9'.repeat(20), type: 's', date });
    const body = { id: 'lst_1', name: 'SIEM', type: 'http', status: 'suspended', sink: {} };
    await store
      .collection('documents')
      .insert({ id: 'log-stream lst_1', kind: 'log-stream', body, created_at: date, updated_at: date });
    try {
      const { code, findings } = await found();
      expect(of(findings, 'signing keys')[0]).to.deep.include({ verdict: 'warning' });
      expect(of(findings, 'signing keys')[0]?.text).to.contain('181 days old: gatehouse keys rotate');
      expect(of(findings, 'clock')[0]).to.include({ verdict: 'fault' });
      expect(of(findings, 'clock')[0]?.text).to.contain(`the log has an event of ${date}`);
      expect(
        of(findings, 'log streams').map(({ verdict, text }) => [verdict, text.split(':')[0]]),
      ).to.deep.equal([['warning', 'SIEM is suspended']]);
      expect(code).to.equal(1);
    } finally {
      await server.stop();
    }
  });

  it('finds a disk without free space, and one that cannot be examined', async function () {
    // Linux has a file system without any free space.
    if (process.platform !== 'linux') this.skip();
    const { code, findings } = await found({ DATA_DIR: '/proc/gatehouse' });
    expect(code).to.equal(1);
    expect(of(findings, 'disk')[0]).to.deep.include({ verdict: 'fault' });
    expect(of(findings, 'disk')[0]?.text).to.contain('the store needs room');
    writeFileSync(join(cwd, 'file'), '');
    expect(of((await found({ DATA_DIR: 'file/data' })).findings, 'disk')[0]).to.include({ verdict: 'fault' });
  });

  it('finds data that other users of the machine can read', async () => {
    await (await serveFolder(cwd)).stop();
    chmodSync(join(cwd, 'data'), 0o755);
    const open = await found();
    expect(open.code).to.equal(0);
    expect(of(open.findings, 'permissions')[0]).to.include({ verdict: 'warning' });
    expect(statSync(join(cwd, 'data')).mode & 0o777).to.equal(0o755);
    chmodSync(join(cwd, 'data/keys/secrets.key'), 0o644);
    const { code, findings } = await found();
    expect(code).to.equal(1);
    expect(of(findings, 'permissions')[0]).to.include({ verdict: 'fault' });
    chmodSync(join(cwd, 'data'), 0o700);
    chmodSync(join(cwd, 'data/keys/secrets.key'), 0o600);
    expect(of((await found()).findings, 'permissions')[0]).to.include({ verdict: 'ok' });
  });

  describe('of a certificate', () => {
    const certificate = async (from: number, to: number, host = 'id.example.test') => {
      x509.cryptoProvider.set(crypto);
      const keys = await crypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
      const made = await x509.X509CertificateGenerator.createSelfSigned({
        name: 'CN=id.example.test',
        keys,
        signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
        notBefore: new Date(Date.now() + from),
        notAfter: new Date(Date.now() + to),
        extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: host }])],
      });
      writeFileSync(join(cwd, 'cert.pem'), made.toString('pem'));
      const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
      writeFileSync(
        join(cwd, 'key.pem'),
        `-----BEGIN PRIVATE KEY-----\n${pkcs8}\n-----END PRIVATE KEY-----\n`,
      );
    };
    const env = {
      TLS: 'files',
      TLS_CERT: 'cert.pem',
      TLS_KEY: 'key.pem',
      BASE_URL: 'https://id.example.test',
    };
    const verdicts = async (over: object = {}) => {
      const { code, findings } = await found({ ...env, ...over });
      return [code, ...of(findings, 'certificate').map(({ verdict }) => verdict)];
    };

    it('reports that it has expired, ends soon, or is for another host', async () => {
      await certificate(-10 * DAY, -DAY);
      expect(await verdicts()).to.deep.equal([1, 'fault']);
      await certificate(-DAY, 10 * DAY);
      expect(await verdicts()).to.deep.equal([0, 'warning']);
      await certificate(-DAY, 60 * DAY);
      expect(await verdicts()).to.deep.equal([0, 'ok']);
      expect(await verdicts({ BASE_URL: 'https://other.example.test' })).to.deep.equal([1, 'fault']);
      expect(await verdicts({ TLS_KEY: 'nowhere.pem' })).to.deep.equal([1, 'fault']);
      await certificate(DAY, 60 * DAY);
      expect(await verdicts()).to.deep.equal([1, 'fault']);
    });

    it('reports the same of the certificate that a proxy shows, and that none is shown', async () => {
      await certificate(-DAY, 60 * DAY);
      const shown = async (host = 'localhost') => {
        const [cert, key] = ['cert.pem', 'key.pem'].map((name) => readFileSync(join(cwd, name)));
        const proxy = tls.createServer({ cert, key }).listen(0, 'localhost');
        await once(proxy, 'listening');
        const { port } = proxy.address() as AddressInfo;
        try {
          return await found({
            TLS: 'proxy',
            TRUSTED_PROXIES: '127.0.0.1',
            BASE_URL: `https://${host}:${port}`,
          });
        } finally {
          proxy.close();
        }
      };
      const textOf = ({ findings }: { findings: Finding[] }) => {
        const [one] = of(findings, 'certificate');
        return `${one?.verdict}: ${one?.text}`;
      };
      expect(textOf(await shown())).to.match(/^fault: the one at localhost:\d+ is not for localhost$/);
      await certificate(-DAY, 60 * DAY, 'localhost');
      expect(textOf(await shown())).to.match(/^ok: the one at localhost:\d+ is good until /);
      await certificate(-DAY, 10 * DAY, 'localhost');
      expect(textOf(await shown())).to.match(/^warning: .* renew it$/);
      await certificate(-10 * DAY, -DAY, 'localhost');
      expect(textOf(await shown())).to.match(/^fault: .* expired on /);
      await certificate(DAY, 60 * DAY, 'localhost');
      expect(textOf(await shown())).to.match(/^fault: .* is valid from /);
      const BASE_URL = `https://localhost:${await freePort()}`;
      const away = await found({ TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL });
      expect(textOf(away)).to.match(/^warning: localhost:\d+ could not be asked/);
    });
  });

  describe('of messages', () => {
    it('reports whether the mail server accepts the credentials, without sending anything', async () => {
      const mail = await startMailServer({
        authOptional: false,
        allowInsecureAuth: true,
        onAuth: ({ username, password }, _session, done) =>
          password === 'right' ? done(null, { user: username }) : done(new Error('no such user')),
      });
      try {
        const at = (password: string) => ({
          SMTP_URL: `smtp://ada:${password}@127.0.0.1:${mail.port}`,
          MAIL_FROM: 'login@example.test',
        });
        const right = await found(at('right'));
        expect(of(right.findings, 'SMTP')[0]).to.include({ verdict: 'ok' });
        const wrong = await found(at('wr0ng-one'));
        expect(wrong.code).to.equal(1);
        expect(of(wrong.findings, 'SMTP')[0]).to.include({ verdict: 'fault' });
        expect(wrong.stdout).not.to.contain('wr0ng-one');
        expect(mail.offered()).to.equal(0);
      } finally {
        await mail.stop();
      }
      const gone = await found({
        SMTP_URL: `smtp://127.0.0.1:${mail.port}`,
        MAIL_FROM: 'login@example.test',
      });
      expect(of(gone.findings, 'SMTP')[0]).to.include({ verdict: 'fault' });
    });

    it('reports whether Twilio accepts the account and the token, without sending anything', async () => {
      const twilio = await startTwilio();
      const env = {
        TWILIO_ACCOUNT_SID: TWILIO.accountSid,
        TWILIO_AUTH_TOKEN: TWILIO.authToken,
        TWILIO_FROM: '+15005550006',
        TWILIO_API_URL: twilio.url,
      };
      const said = async (over: object = {}) => {
        const { code, stdout, findings } = await found({ ...env, ...over });
        expect(stdout).not.to.contain(TWILIO.authToken);
        const [one] = of(findings, 'Twilio');
        expect(code).to.equal(one?.verdict === 'fault' ? 1 : 0);
        return `${one?.verdict}: ${one?.text}`;
      };
      try {
        expect(await said()).to.match(/^ok: the account is active/);
        expect(await said({ TWILIO_AUTH_TOKEN: '0'.repeat(32) })).to.match(
          /^fault: .*\(401\): TWILIO_AUTH_TOKEN/,
        );
        for (const [account, expected] of [
          ['suspended', /^fault: the account is suspended/],
          ['\u001b[2J', /^fault: the account is not active/],
          [403, /^fault: .*\(403\): TWILIO_ACCOUNT_SID/],
          [{ text: `token ${TWILIO.authToken}` }, /^fault: it cannot be asked .* not JSON/],
          [503, /^warning: .*\(503\)/],
        ] as const) {
          twilio.setAccount(account);
          expect(await said()).to.match(expected);
        }
        const asked = twilio.asked();
        // Settings that do not have Twilio's form are not sent there.
        expect(await said({ TWILIO_ACCOUNT_SID: 'AC1' })).to.match(/^fault: TWILIO_ACCOUNT_SID/);
        expect(await said({ TWILIO_AUTH_TOKEN: 'token' })).to.match(/^fault: TWILIO_AUTH_TOKEN/);
        expect(await said({ TWILIO_FROM: '+' })).to.match(/^fault: TWILIO_FROM/);
        expect([twilio.asked(), twilio.messages]).to.deep.equal([asked, []]);
      } finally {
        await twilio.stop();
      }
      expect(await said()).to.match(/^fault: it cannot be asked for the account: .* could not be reached/);
    });
  });

  it('requests the hosts that the tenant depends on, and compares their time', async () => {
    let behind = 0;
    const asked: string[] = [];
    const receiver = http.createServer((request, response) => {
      asked.push(request.url ?? '');
      response.writeHead(404, { date: new Date(Date.now() - behind).toUTCString() }).end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const at = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
    const away = `http://127.0.0.1:${await freePort()}`;
    const stream = (name: string, url: string) =>
      `  - { name: ${name}, type: http, sink: { httpEndpoint: '${url}/secret-path?key=1' } }\n`;
    const gateway = `http://127.0.0.1:${await freePort()}`;
    const texts = `{ provider: sms_gateway, gateway_url: '${gateway}/secret-path' }`;
    writeFileSync(
      join(cwd, 'tenant.yaml'),
      `logStreams:\n${stream('There', at)}${stream('Away', away)}clients:\n  - { client_id: web, name: Web }\n` +
        `connections:\n  - { name: texts, strategy: sms, enabled_clients: [web], options: ${texts} }\n`,
    );
    await (await serveFolder(cwd, { TENANT_FILE: 'tenant.yaml' })).stop();
    asked.length = 0;
    try {
      const { code, findings, stdout } = await found({ TENANT_FILE: 'tenant.yaml' });
      expect(code).to.equal(0);
      const outside = of(findings, 'outside');
      expect(outside.map(({ verdict }) => verdict)).to.have.members(['ok', 'warning', 'warning']);
      expect(outside.map(({ text }) => text).join()).to.contain('the connection texts');
      // The path may be a secret, and may have an effect there.
      expect(stdout).not.to.contain('secret-path');
      expect(asked).to.deep.equal(['/']);
      expect(of(findings, 'clock').map(({ verdict }) => verdict)).to.deep.equal(['ok', 'ok']);
      behind = 3_600_000;
      const ahead = await found({ TENANT_FILE: 'tenant.yaml' });
      expect(ahead.code).to.equal(1);
      expect(of(ahead.findings, 'clock').at(-1)?.text).to.match(/^3\d{3} s ahead of .*NTP$/);
    } finally {
      receiver.close();
    }
  });
});
