// The settings: their defaults, and the faults, which are all reported in one message.
import { Resolver } from 'node:dns/promises';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import pg from 'pg';
import { smtpSettings } from '../../src/capabilities/delivery/transports.ts';
import { createLog } from '../../src/runtime/log.ts';
import { faultText } from '../../src/server/fault.ts';
import { startGatehouse } from '../../src/server/start.ts';
import { outboundAllow, readSettings, SettingsFault } from '../../src/settings/index.ts';
import { withPort } from '../../src/settings/server.ts';
import { connectionSettings } from '../../src/store/postgres/postgres-connection.ts';
import { EXAMPLE_FILE } from '../../src/tenant/examples.ts';
import { loadTenantFile } from '../../src/tenant/load.ts';
import { builtProgram } from '../support/built.ts';
import { CLI, runToEnd } from '../support/process.ts';

type Env = Record<string, string>;

function faultsOf(env: Env): readonly string[] {
  try {
    readSettings(env);
  } catch (thrown) {
    if (thrown instanceof SettingsFault) return thrown.faults;
    throw thrown;
  }
  return [];
}

const BASE_URL = 'https://id.example.test';
const behindProxy = { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL };

describe('settings', () => {
  it('are those of development by default', () => {
    expect(readSettings({})).to.deep.include({
      port: 3000,
      host: '127.0.0.1',
      baseUrl: 'https://localhost:3000',
      issuer: 'https://localhost:3000/',
      tenantFile: 'config/tenant.yaml',
      dataDir: './data',
      tls: { mode: 'auto' },
      signing: { place: 'local', variables: {} },
      console: true,
      logStreamFiles: false,
      maxConnections: 10_000,
      production: false,
      logLevel: 'info',
    });
  });

  it('serve metrics on the loopback address, and refuse a port in use or a token that could be guessed', () => {
    expect(readSettings({ METRICS_PORT: '9464' }).metrics).to.deep.equal({ host: '127.0.0.1', port: 9464 });
    expect(faultsOf({ METRICS_PORT: '3000' })).to.deep.equal(['METRICS_PORT: is that of PORT']);
    expect(faultsOf({ METRICS_HOST: '0.0.0.0' })).to.deep.equal([
      'METRICS_HOST: means something with METRICS_PORT alone',
    ]);
    expect(faultsOf({ METRICS_TOKEN: 'short' })).to.have.length(1);
  });

  it('that are empty count as not set', () => {
    const empty = { PORT: '', BASE_URL: '', TLS: '', DATABASE_URL: '', NODE_ENV: '', LOG_LEVEL: '' };
    expect(readSettings(empty)).to.deep.equal(readSettings({}));
  });

  it('use the public origin with a trailing slash as the issuer', () => {
    for (const origin of [BASE_URL, `${BASE_URL}/`]) {
      expect(readSettings({ BASE_URL: origin })).to.include({ baseUrl: BASE_URL, issuer: `${BASE_URL}/` });
    }
  });

  it('use the port that the system chose, unless the public origin is set', () => {
    expect(withPort(readSettings({ PORT: '0' }), 1234)).to.include({
      port: 1234,
      baseUrl: 'https://localhost:1234',
      issuer: 'https://localhost:1234/',
    });
    expect(withPort(readSettings({ PORT: '0', BASE_URL }), 1234)).to.include({
      port: 1234,
      issuer: `${BASE_URL}/`,
    });
  });

  for (const name of ['prod', 'Production', 'staging']) {
    it(`refuse NODE_ENV=${name}, which would have the rules of development`, () => {
      expect(faultsOf({ NODE_ENV: name }).join()).to.match(/^NODE_ENV: /);
    });
  }

  for (const key of [
    'short',
    'f'.repeat(63),
    Buffer.alloc(31, 1).toString('base64'),
    `${'A'.repeat(43)}==`,
  ]) {
    it(`refuse ${key} as the key of the secrets, without quoting it`, () => {
      expect(faultsOf({ SECRETS_KEY: key })).to.deep.equal([
        'SECRETS_KEY: must be 32 random bytes, in base64 or in hexadecimal digits',
      ]);
    });
  }

  it('refuse in production a key of the secrets that is not random', () => {
    const SECRETS_KEY = 'a1'.repeat(32);
    expect(faultsOf({ NODE_ENV: 'production', SECRETS_KEY }).join()).to.contain(
      'SECRETS_KEY: must be random',
    );
    expect(readSettings({ SECRETS_KEY }).secretsKey).not.to.equal(undefined);
  });

  for (const port of ['x', '-1', '1.5', '65536', '0x10', '1e3', ' ']) {
    it(`refuse ${JSON.stringify(port)} as a port`, () => {
      expect(faultsOf({ PORT: port })).to.deep.equal(['PORT: must be a port number, 0 to 65535']);
    });
  }

  for (const url of [
    'id.example.test',
    'http://id.example.test',
    'https://id.example.test/path',
    'https://id.example.test/?query',
    'https://id.example.test?',
    'https://id.example.test#fragment',
    'https://user@id.example.test',
    'https://:password@id.example.test',
    'javascript:alert(1)',
  ]) {
    it(`refuse ${url} as the public origin`, () => {
      const faults = faultsOf({ BASE_URL: url });
      expect(faults).to.have.length(1);
      expect(faults[0]).to.match(/^BASE_URL: must be an https origin/);
    });
  }

  it('accept addresses and ranges as trusted proxies', () => {
    const { tls } = readSettings({
      ...behindProxy,
      TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8,::1,2001:db8::/32 ,',
    });
    expect(tls).to.deep.equal({
      mode: 'proxy',
      trustedProxies: ['127.0.0.1', '10.0.0.0/8', '::1', '2001:db8::/32'],
    });
  });

  for (const proxy of [
    '10.0.0.0/33',
    '2001:db8::/129',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0',
    '*',
    'proxy',
  ]) {
    it(`refuse ${proxy} as a trusted proxy`, () => {
      expect(faultsOf({ ...behindProxy, TRUSTED_PROXIES: proxy })).to.deep.equal([
        `TRUSTED_PROXIES: ${proxy} is no IP address or CIDR range`,
      ]);
    });
  }

  it('accept addresses of DNS servers, with and without a port', () => {
    const servers = [
      '192.0.2.1',
      '192.0.2.1:5353',
      '[192.0.2.1]:53',
      '2001:db8::1',
      '[2001:db8::1]',
      '[2001:db8::1]:65535',
      '[::ffff:192.0.2.1]:00053',
    ];
    expect(() => new Resolver().setServers(servers)).to.not.throw();
    expect(readSettings({ DNS_SERVERS: servers.join() }).dnsServers).to.deep.equal(servers);
  });

  const noServers = [
    'dns.example',
    '192.0.2',
    '192.0.2.1:',
    '192.0.2.1:0',
    '192.0.2.1:65536',
    '192.0.2.1:5e3',
  ];
  noServers.push(
    '[2001:db8::1]:99999',
    '[2001:db8::1',
    '2001:db8::1]:53',
    '[]',
    'https://192.0.2.1',
    '0x7f.1',
  );
  // The resolver drops the zone: every question failed, although the setting had been accepted.
  noServers.push('fe80::1%eth0', '[fe80::1%eth0]:53', '[fe80::1%25eth0]', '::1%');
  for (const server of noServers) {
    it(`refuse ${server} as a DNS server`, () => {
      expect(faultsOf({ DNS_SERVERS: server })).to.deep.equal([
        `DNS_SERVERS: ${server} is no IP address, with or without a port`,
      ]);
    });
  }

  it('accept hosts for outbound requests; the default is this machine, in development for it alone', () => {
    const allowed = (env: Record<string, string>) => outboundAllow(readSettings(env));
    expect(allowed({ OUTBOUND_ALLOW: '10.0.0.0/8, idp.corp.example,' })).to.deep.equal([
      '10.0.0.0/8',
      'idp.corp.example',
    ]);
    expect(allowed({ OUTBOUND_ALLOW: ',' })).to.deep.equal([]);
    expect(allowed({})).to.deep.equal(['127.0.0.0/8', '::1/128']);
    expect(allowed({ BASE_URL })).to.deep.equal([]);
    expect(allowed({ ...behindProxy, NODE_ENV: 'production' })).to.deep.equal([]);
    expect(allowed({ ...behindProxy, BASE_URL: 'https://localhost', NODE_ENV: 'production' })).to.deep.equal(
      [],
    );
  });

  for (const entry of ['10.0.0.0/33', 'https://idp.example', 'idp.example:443', '*.example', '127.1']) {
    it(`refuse ${entry} as a host for outbound requests`, () => {
      expect(faultsOf({ OUTBOUND_ALLOW: entry })).to.deep.equal([
        `OUTBOUND_ALLOW: ${entry} is no host name, IP address or CIDR range`,
      ]);
    });
  }

  it('require trusted proxies and the public origin behind a proxy', () => {
    const faults = ['TRUSTED_PROXIES: required with TLS=proxy', 'BASE_URL: required with TLS=proxy'];
    expect(faultsOf({ TLS: 'proxy' })).to.deep.equal(faults);
    expect(faultsOf({ TLS: 'proxy', TRUSTED_PROXIES: ',' })).to.deep.equal(faults);
  });

  it('require both files where the certificate comes from files', () => {
    expect(faultsOf({ TLS: 'files' })).to.deep.equal([
      'TLS_CERT: required with TLS=files',
      'TLS_KEY: required with TLS=files',
    ]);
    expect(readSettings({ TLS: 'files', TLS_CERT: 'a', TLS_KEY: 'b' }).tls).to.deep.equal({
      mode: 'files',
      certFile: 'a',
      keyFile: 'b',
    });
  });

  it('refuse the development certificate and an assumed origin in production', () => {
    const faults = faultsOf({ NODE_ENV: 'production' });
    expect(faults).to.have.length(2);
    expect(faults.join('\n')).to.contain('TLS: auto is for development').and.contain('BASE_URL: required');
    expect(readSettings({ NODE_ENV: 'production', ...behindProxy }).production).to.equal(true);
  });

  it('configure mail and SMS', () => {
    const env = {
      SMTP_URL: 'smtps://me:secret@mail.example.test',
      MAIL_FROM: 'Example <login@example.test>',
      TWILIO_ACCOUNT_SID: 'AC1',
      TWILIO_AUTH_TOKEN: 'token',
      TWILIO_FROM: '+15005550006',
    };
    expect(readSettings(env)).to.deep.include({
      mail: { smtpUrl: env.SMTP_URL, from: env.MAIL_FROM },
      sms: { accountSid: 'AC1', authToken: 'token', from: '+15005550006' },
    });
  });

  for (const SMTP_URL of [
    'smtp://mail.example.test',
    'smtp://mail.example.test:2525/',
    'smtps://me%40example.test:p%2Fw%23%25@mail.example.test',
    'smtps://me@[::1]:465',
    'smtp://127.0.0.1:1025',
  ]) {
    it(`accept ${SMTP_URL} as a mail server`, () => {
      expect(faultsOf({ SMTP_URL, MAIL_FROM: 'a@b.test' })).to.deep.equal([]);
      expect(() => smtpSettings(new URL(SMTP_URL))).not.to.throw();
    });
  }

  it('report all faults of mail and SMS, without a secret', () => {
    const cases: [Env, string][] = [
      [{ SMTP_URL: 'https://hidden@x', MAIL_FROM: 'a@b.test' }, 'SMTP_URL: must be'],
      [{ SMTP_URL: 'smtp:hidden' }, 'MAIL_FROM: required with SMTP_URL'],
      ...(
        [
          ['smtp:hidden', 'names no host'],
          ['smtp://', 'names no host'],
          ['smtps://hidden:hidden@', 'SMTP_URL: must be'],
          ['hidden', 'SMTP_URL: must be'],
          ['smtp://%zz', 'its host has a %'],
          ['smtp://hidden%zz:x@mail.test', 'has a % that stands for no character'],
          ['smtp://x:hidden%@mail.test', 'has a % that stands for no character'],
          ['smtp://:hidden@mail.test', 'a password and no user'],
          ['smtp://mail.test:0', 'its port is 0'],
          ['smtp://mail.test:99999', 'SMTP_URL: must be'],
          ['smtp://mail.test/hidden', 'more after the host'],
          ['smtp://mail.test?hidden=1', 'more after the host'],
          ['smtp://x:hid#den@mail.test', '# as %23'],
          ['smtp://mail test', 'SMTP_URL: must be'],
        ] as const
      ).map(([SMTP_URL, fault]): [Env, string] => [{ SMTP_URL, MAIL_FROM: 'a@b.test' }, fault]),
      [{ MAIL_FROM: 'nobody' }, 'MAIL_FROM: must be an e-mail address'],
      [{ MAIL_FROM: 'a@b.test\r\nBcc: c@d.test' }, 'MAIL_FROM: must be an e-mail address'],
      [{ TWILIO_ACCOUNT_SID: 'AChidden', TWILIO_FROM: '+1' }, 'one does not work without the other'],
      [
        { TWILIO_ACCOUNT_SID: 'hidden', TWILIO_AUTH_TOKEN: 'hidden', TWILIO_FROM: '+1' },
        'must start with AC',
      ],
      [{ TWILIO_ACCOUNT_SID: 'AC1', TWILIO_AUTH_TOKEN: 'hidden' }, 'exactly one of them is required'],
      [
        {
          TWILIO_ACCOUNT_SID: 'AC1',
          TWILIO_AUTH_TOKEN: 'hidden',
          TWILIO_FROM: '+1',
          TWILIO_MESSAGING_SERVICE_SID: 'MG1',
        },
        'exactly one of them is required',
      ],
      [{ TWILIO_API_URL: 'ftp://x' }, 'TWILIO_API_URL: must be'],
    ];
    for (const [env, fault] of cases) {
      const faults = faultsOf(env).join('\n');
      expect(faults).to.contain(fault);
      expect(faults).not.to.contain('hidden');
    }
  });

  it('lead to the database of the address, whatever the variables of PostgreSQL say', () => {
    const { PGHOST: before } = process.env;
    process.env.PGHOST = 'elsewhere.example.test';
    try {
      const hostOf = (url: string) => new pg.Client(connectionSettings(url)).host;
      expect(hostOf('postgres:///x')).to.equal('localhost');
      expect(hostOf('postgres:///x?host=')).to.equal('localhost');
      expect(hostOf('postgres:///x?host=/var/run/postgresql')).to.equal('/var/run/postgresql');
      expect(hostOf('postgres://db/x?sslmode=verify-full')).to.equal('db');
    } finally {
      if (before === undefined) delete process.env.PGHOST;
      else process.env.PGHOST = before;
    }
  });

  it('refuse an invalid or unprotected database address, without quoting it', () => {
    const production = {
      NODE_ENV: 'production',
      TLS: 'files',
      TLS_CERT: 'x',
      TLS_KEY: 'x',
      BASE_URL: 'https://a.example',
    };
    const cases: [Record<string, string>, string][] = [
      [{ DATABASE_URL: 'mysql://user:hidden@db/x' }, 'must be postgres://'],
      [{ DATABASE_URL: 'postgres://user:hidden@db' }, 'must be postgres://'],
      [{ DATABASE_URL: 'hidden' }, 'must be postgres://'],
      [{ DATABASE_URL: 'postgres://user:hidden@db/x?sslmode=prefer' }, 'sslmode must be one of'],
      [{ ...production, DATABASE_URL: 'postgres://user:hidden@db/x' }, 'needs sslmode=verify-full'],
      ...['localhost/x?host=db', 'db/x?host=db', 'localhost/x?host=hidden.example'].map(
        (place): [Record<string, string>, string] => [
          { ...production, DATABASE_URL: `postgres://user:hidden@${place}` },
          'needs sslmode=verify-full',
        ],
      ),
      // The driver takes the last one.
      [
        { ...production, DATABASE_URL: 'postgres://user:hidden@db/x?sslmode=verify-full&sslmode=disable' },
        'has the parameter sslmode more than once',
      ],
      ...['connections=1', 'connections=201', 'connections=', 'connections=ten', 'connections=1e1'].map(
        (query): [Record<string, string>, string] => [
          { DATABASE_URL: `postgres://user:hidden@db/x?${query}` },
          'connections must be a number from 2 to 200',
        ],
      ),
      ...['statement_timeout=0', 'lock_timeout=never'].map((query): [Record<string, string>, string] => [
        { DATABASE_URL: `postgres://user:hidden@db/x?${query}` },
        'must be a number from 1 to 600000',
      ]),
    ];
    for (const [env, fault] of cases) {
      const faults = faultsOf(env);
      expect(faults).to.have.length(1);
      expect(faults[0])
        .to.match(/^DATABASE_URL: /)
        .and.contain(fault)
        .and.not.contain('hidden');
    }
    for (const url of [
      'postgres://u@127.0.0.1/x',
      'postgres:///x?host=/var/run/postgresql',
      'postgres://u@%2Fvar%2Frun%2Fpostgresql/x',
      'postgres://u@127.0.0.1/x?connections=40&statement_timeout=20000',
      'postgres://u@db/x?sslmode=disable',
      'postgresql://u@db/x?sslmode=verify-full',
    ]) {
      expect(faultsOf({ ...production, DATABASE_URL: url }), url).to.deep.equal([]);
    }
  });

  it('report invalid values and conflicts between settings together', () => {
    const faults = faultsOf({
      PORT: 'x',
      BASE_URL: 'http://plain.example',
      TLS: 'proxy',
      TRUSTED_PROXIES: 'nobody',
      DATABASE_URL: 'postgres://x',
      LOG_LEVEL: 'loud',
    });
    expect(faults.map((fault) => fault.split(':')[0])).to.have.members([
      'PORT',
      'LOG_LEVEL',
      'BASE_URL',
      'TRUSTED_PROXIES',
      'DATABASE_URL',
    ]);
  });
});

describe('a process with settings that do not work', () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-settings-'));
    writeFileSync(join(cwd, 'junk.pem'), 'junk\n');
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  /** Returns what a refused start in this process prints. */
  const refusal = async (env: Env) => {
    const before = process.cwd();
    process.chdir(cwd);
    try {
      const running = await startGatehouse({
        env: { TENANT_FILE: fileURLToPath(EXAMPLE_FILE), ...env },
        log: createLog('silent'),
        loadTenant: ({ tenantFile }) => loadTenantFile(tenantFile, env),
      });
      await running.stop();
    } catch (thrown) {
      return faultText(thrown);
    } finally {
      process.chdir(before);
    }
    throw new Error('it started');
  };

  it('prints all faults on standard error, and exits with 1', async () => {
    const { code, stdout, stderr } = await runToEnd({
      cwd,
      env: { PORT: 'x', TLS: 'maybe', LOG_LEVEL: 'loud', DATABASE_URL: 'postgres://x' },
    });
    expect(code).to.equal(1);
    expect(stdout).to.equal('');
    const [first, ...faults] = stderr.trimEnd().split('\n');
    expect(first).to.equal('The settings are wrong:');
    expect(faults.map((line) => /^ {2}- ([A-Z_]+): /.exec(line)?.[1])).to.have.members([
      'PORT',
      'TLS',
      'LOG_LEVEL',
      'DATABASE_URL',
    ]);
  });

  it('does the same for a command', async () => {
    const { code, stderr } = await runToEnd({
      cwd,
      env: { LOG_LEVEL: 'loud' },
      command: [process.execPath, CLI, 'check'],
    });
    expect(code).to.equal(1);
    expect(stderr).to.match(/^The settings are wrong:\n {2}- LOG_LEVEL: .*\n$/);
  });

  it('names the directory of a damaged certificate', async () => {
    mkdirSync(join(cwd, 'data/tls'), { recursive: true });
    for (const name of ['ca.pem', 'ca-key.pem']) writeFileSync(join(cwd, 'data/tls', name), 'junk\n');
    const { code, stderr } = await runToEnd({ cwd, env: { PORT: '0' } });
    expect(stderr).to.match(/^the certificates in data\/tls cannot be used; .*\n$/);
    expect(code).to.equal(1);
  });

  // No file may grow beyond so many blocks of 512 or 1024 bytes, so each start gets further than the one before.
  for (const blocks of [0, 1, 2, 4]) {
    it(`names the file that there is no space for (${blocks} blocks)`, async () => {
      writeFileSync(join(cwd, 'tenant.yaml'), readFileSync(EXAMPLE_FILE));
      const command = [
        'sh',
        '-c',
        `ulimit -f ${blocks}; exec "$0" "$1"`,
        process.execPath,
        await builtProgram(),
      ];
      const { code, stderr } = await runToEnd({
        cwd,
        env: { PORT: '0', TENANT_FILE: 'tenant.yaml', LOG_LEVEL: 'silent' },
        command,
      });
      expect(stderr).to.match(
        /data\/(store(\.new)?\/[\w.]+|tls\/[a-z-]+\.pem): (EFBIG: |ENOSPC: |disk).*\n$/,
      );
      expect(stderr).not.to.contain('without the directory');
      expect(code).to.equal(1);
    });
  }

  it('names the tenant file that there is no space for, and leaves none that is cut off', async () => {
    const command = ['sh', '-c', 'ulimit -f 1; exec "$0" "$1"', process.execPath, await builtProgram()];
    const { code, stderr } = await runToEnd({ cwd, env: { PORT: '0', LOG_LEVEL: 'silent' }, command });
    expect(stderr).to.match(/^(EFBIG|ENOSPC): .*config\/tenant\.yaml'\n$/);
    expect(code).to.equal(1);
    expect(existsSync(join(cwd, 'config/tenant.yaml'))).to.equal(false);
  });

  for (const [what, env, message] of [
    [
      'a missing certificate file',
      { TLS: 'files', TLS_CERT: 'none.pem', TLS_KEY: 'junk.pem' },
      /^TLS_CERT: none\.pem cannot be read \(.*\)\n$/,
    ],
    [
      'an invalid certificate',
      { TLS: 'files', TLS_CERT: 'junk.pem', TLS_KEY: 'junk.pem' },
      /^TLS_CERT, TLS_KEY: junk\.pem and junk\.pem are not a certificate and its key, in PEM \(.*\)\n$/,
    ],
    [
      'an address of another machine',
      { HOST: '192.0.2.1' },
      /^HOST, PORT: cannot listen on port 0 of 192\.0\.2\.1 \(.*\)\n$/,
    ],
    ['a data directory that is a file', { DATA_DIR: 'junk.pem' }, /^.*junk\.pem.*\n$/],
    [
      'a missing tenant file',
      { TENANT_FILE: 'none.yaml' },
      /^The tenant file is wrong:\n {2}- none\.yaml cannot be read \(there is no such file\)\n$/,
    ],
  ] as const) {
    it(`reports in words that it was given ${what}`, async () => {
      expect(`${await refusal({ PORT: '0', ...env })}\n`).to.match(message);
    });
  }
});
