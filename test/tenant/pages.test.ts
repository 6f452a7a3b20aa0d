// Customized pages and e-mails of a tenant file: HTML in it, or in files beside it as the deploy tool writes them.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadTenantFile, readTenant, TenantFault } from '../../src/tenant/load.ts';

describe('the pages of a tenant file', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gatehouse-pages-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  const load = async (yaml: string, env: Record<string, string> = {}) => {
    const path = join(directory, 'tenant.yaml');
    await writeFile(path, yaml);
    return loadTenantFile(path, env);
  };
  const GOOD = "<script>go('@@config@@')</script>";

  it('may be paths of files, as may e-mails and the pages of applications', async () => {
    await writeFile(join(directory, 'login.html'), GOOD);
    await writeFile(join(directory, 'mail.html'), '<p>Hello</p>');
    const { tenant, warnings } = await load(`
pages: [{ name: login, html: ./login.html, enabled: true }]
emailTemplates: [{ template: verify_email, body: ./mail.html }]
clients: [{ name: Own, client_id: own, custom_login_page_on: true, custom_login_page: login.html }]
`);
    expect(tenant.pages).to.deep.equal([{ name: 'login', html: GOOD, enabled: true }]);
    expect(tenant.emailTemplates[0]?.body).to.equal('<p>Hello</p>');
    expect(tenant.clients[0]?.custom_login_page).to.equal(GOOD);
    expect(warnings).to.deep.equal([]);
  });

  it('take variables of the environment in files, and leave JavaScript template literals unchanged', async () => {
    const script = '<script>go(`${location}`, "##CDN##", "##notSet##", "@@config@@")</script>';
    await writeFile(join(directory, 'login.html'), script);
    const { tenant } = await load('pages: [{ name: login, html: login.html }]', { CDN: 'cdn.test' });
    expect(tenant.pages?.[0]?.html).to.equal(script.replace('##CDN##', 'cdn.test'));
  });

  it('are a fault when a file is missing, each with its path', async () => {
    const fault = await load(`
pages: [{ name: login, html: ./gone.html }]
emailTemplates: [{ template: verify_email, body: mails/gone.html }]
`).catch((thrown: unknown) => thrown);
    expect(fault).to.be.instanceOf(TenantFault);
    expect((fault as TenantFault).faults).to.deep.equal([
      `pages[0].html: ./gone.html cannot be read (there is no such file) (${join(directory, 'tenant.yaml')}:2)`,
      `emailTemplates[0].body: mails/gone.html cannot be read (there is no such file) (${join(directory, 'tenant.yaml')}:3)`,
    ]);
  });

  it('cause a warning when they cannot work', () => {
    const { warnings } = readTenant({
      pages: [
        { name: 'login', html: '<p onclick="go()">Log in</p>' },
        { name: 'password_reset', html: '<p>Reset</p>', enabled: true },
        { name: 'error_page', html: '<p>Error</p>', enabled: false },
      ],
      clients: [
        { name: 'Off', client_id: 'off', custom_login_page: '<p>', custom_login_page_on: false },
        { name: 'Empty', client_id: 'empty', custom_login_page: ' ' },
      ],
    });
    expect(warnings).to.have.members([
      'pages[0].html has no @@config@@: it cannot know which login it is for',
      "pages[0].html has an inline onclick=, which the page's policy does not run: use addEventListener",
      'pages[1]: password_reset is not built in: ours is shown',
      'clients[1].custom_login_page is empty: our own page is shown',
    ]);
  });

  it('require a name, and HTML that is a string', () => {
    expect(() => readTenant({ pages: [{ html: '<p>' }] })).to.throw();
    expect(() => readTenant({ pages: [{ name: 'login', html: 5 }] })).to.throw();
  });
});
