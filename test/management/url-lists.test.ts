// Wildcards and placeholders where lists of URLs come in: the Management API, the tenant file, and the console.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { runCommand } from '../support/command.ts';
import type { TestServer } from '../support/server.ts';
import { callApi, startManaged } from './support.ts';

/** Each with what its refusal says. */
const FORBIDDEN: [string, string][] = [
  ['https://*', 'first label'],
  ['https://*.com', 'public suffix com'],
  ['https://*.CO.uk/cb', 'public suffix CO.uk'],
  ['https://*.github.io', 'public suffix github.io'],
  ['https://app-*-team.vercel.app/cb', 'public suffix vercel.app'],
  ['https://*.kawasaki.jp', 'public suffix kawasaki.jp'],
  ['https://*.xn--p1ai', 'public suffix xn--p1ai'],
  ['https://*.internal', 'public suffix internal'],
  ['https://sub.*.example.com', 'first label'],
  ['https://*.*.example.com', 'there can be one'],
  ['https://*.example.com/*', 'there can be one'],
  ['https://**.example.com', 'there can be one'],
  ['https://*.10.0.0.1', 'no host name'],
  ['https://*.example.com.', 'first label'],
  ['https://app.example.com:*', 'first label'],
  ['https://*@app.example.com', 'first label'],
  ['https://*.b\u00fccher.example', 'first label'],
  ['com.example.app://*.example.com', 'http:// or https://'],
  ['https://{organization_name}', 'first label'],
  ['https://{organization_name}.com', 'public suffix com'],
  ['https://app.example.com/{organization_name}', 'first label'],
  ['https://sub.{organization_name}.example.com', 'first label'],
  ['https://pre-{organization_name}.example.com', 'whole label'],
  ['https://{organization_name}.{organization_name}.example.com', 'there can be one'],
  ['https://{organization_name}.*.example.com', 'there can be one'],
  ['com.example.app://{organization_name}.example.com', 'http:// or https://'],
];
const ALLOWED = [
  'https://*.app.example.com/cb',
  'http://*.app.example.com:8080',
  'https://pr-*-web.app.example.com',
  'http://*.localhost:3000',
  'https://*.svc.cluster.local',
  'https://{organization_name}.example.com/cb',
  'https://app.example.com/*',
  'com.example.app:/cb',
];

describe('wildcards in lists of URLs', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged();
  });
  after(() => server?.stop());

  const create = async (lists: object) => {
    const answer = await callApi(server, 'POST', '/clients', { name: 'Made', app_type: 'spa', ...lists });
    return { status: answer.status, body: (await answer.json()) as Record<string, string> };
  };

  for (const [entry, why] of FORBIDDEN)
    it(`are refused: ${entry}`, async () => {
      // What is no URL at all is no callback either, and refused as such.
      const [list, format] = URL.canParse(entry) ? ['callbacks', 'callback-url'] : ['web_origins', 'url'];
      const { status, body } = await create({ [list]: ['https://app.example.com', entry] });
      expect(status).to.equal(400);
      expect(body.message).to.include(`'Object didn't pass validation for format ${format}: ${entry} (`);
      expect(body.message).to.include(why).and.to.include(`on property ${list}[1]`);
    });

  it('are refused in each of the lists, and when an application is changed', async () => {
    const { body } = await create({});
    for (const list of ['callbacks', 'allowed_logout_urls', 'web_origins', 'allowed_origins']) {
      for (const entry of ['https://*.co.uk', 'https://*']) {
        expect((await create({ [list]: [entry] })).status, list).to.equal(400);
        const changed = await callApi(server, 'PATCH', `/clients/${body.client_id}`, { [list]: [entry] });
        expect(changed.status, list).to.equal(400);
      }
      if (list !== 'callbacks') expect((await create({ [list]: ['*'] })).status, list).to.equal(400);
    }
    expect((await create({ initiate_login_uri: 'https://*.app.example.com/login' })).status).to.equal(400);
  });

  it('are kept as they are written, where they are allowed', async () => {
    const { status, body } = await create({ callbacks: ALLOWED, allowed_logout_urls: ALLOWED });
    expect(status).to.equal(201);
    expect(body).to.deep.include({ callbacks: ALLOWED, allowed_logout_urls: ALLOWED });
  });

  it("are allowed in the tenant's logout URLs, where there is no organization", async () => {
    const patch = async (entry: string) =>
      (await callApi(server, 'PATCH', '/tenants/settings', { allowed_logout_urls: [entry] })).status;
    expect(await patch('https://*.app.example.com')).to.equal(200);
    expect(await patch('https://*.co.uk')).to.equal(400);
    expect(await patch('https://{organization_name}.example.com')).to.equal(400);
  });

  describe('in a tenant file', () => {
    let cwd: string;
    before(() => {
      cwd = mkdtempSync(join(tmpdir(), 'gatehouse-urls-'));
    });
    after(() => rmSync(cwd, { recursive: true }));

    const check = async (client: object, env: Record<string, string> = {}) => {
      const clients = [{ client_id: 'app', name: 'App', app_type: 'spa', ...client }];
      writeFileSync(join(cwd, 'tenant.yaml'), stringify({ clients, databases: [], connections: [] }));
      return runCommand({ cwd, env: { TENANT_FILE: 'tenant.yaml', ...env }, args: ['check'] });
    };

    it('match nothing where they are forbidden, and the warning says why: the rest of the file is not to wait for them', async () => {
      const { code, stdout, stderr } = await check({
        callbacks: ['https://app.example.com', 'https://*.co.uk/cb'],
        web_origins: ['*'],
        allowed_logout_urls: ['https://{organization_name}'],
      });
      const said = stdout + stderr;
      expect(code).to.equal(0);
      expect(said).to.match(
        /clients\[0\]\.callbacks\[1\]: https:\/\/\*\.co\.uk\/cb matches nothing: .* public suffix co\.uk/,
      );
      expect(said).to.include('clients[0].web_origins[0]: * matches nothing');
      expect(said).to.include(
        'clients[0].allowed_logout_urls[0]: https://{organization_name} matches nothing',
      );
    });

    it('are warned of where they match nothing', async () => {
      const { code, stdout, stderr } = await check({
        callbacks: [
          'https://{organization_name}.example.com',
          'https://app.example.com/*',
          'https://{custom_domain.metadata.public_app}.example.com',
        ],
      });
      const said = stdout + stderr;
      expect(code).to.equal(0);
      expect(said).to.include('https://{organization_name}.example.com matches nothing: organization_usage');
      expect(said).to.include('* in https://app.example.com/* stands for itself');
      expect(said).to.include(
        'https://{custom_domain.metadata.public_app}.example.com matches nothing: its placeholder',
      );
      expect(
        (await check({ organization_usage: 'allow', callbacks: ['https://{organization_name}.example.com'] }))
          .stdout,
      ).not.to.include('warning');
    });

    it('are warned of in production, and not before', async () => {
      const wildcard = { callbacks: ['https://*.app.example.com/cb', 'https://app.example.com/cb'] };
      const said = async (env: Record<string, string>) => {
        const { stdout, stderr } = await check(wildcard, env);
        return stdout + stderr;
      };
      expect(await said({})).not.to.include('*.app.example.com');
      expect(
        await said({
          NODE_ENV: 'production',
          BASE_URL: 'https://login.example.com',
          TLS: 'proxy',
          TRUSTED_PROXIES: '127.0.0.1',
          SMTP_URL: 'smtp://localhost',
          MAIL_FROM: 'a@example.com',
        }),
      ).to.match(/clients\[0\]: https:\/\/\*\.app\.example\.com\/cb: .*name the hosts/);
    });
  });
});
