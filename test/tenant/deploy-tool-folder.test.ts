// A folder of the deploy tool is planned and applied as a file is; members in files of their own are read from them.
import { expect } from 'chai';
import { loadTenantFile, type TenantFault } from '../../src/tenant/load.ts';
import { startServer } from '../support/server.ts';
import { order, type TenantFolder, tenantFolder } from '../support/tenant-folder.ts';

describe('a folder of the deploy tool with everything that may be a file', () => {
  let folder: TenantFolder;
  beforeEach(async () => {
    folder = await tenantFolder();
  });
  afterEach(() => folder.remove());

  it('is planned and applied, with ids that stay', async () => {
    await folder.write('tenant.json', { friendly_name: 'Folder' });
    await folder.write('clients/Web.json', { name: 'Web', app_type: 'regular_web' });
    await folder.write('resource-servers/API.json', { name: 'API', identifier: 'https://api.test' });
    await folder.write('grants/web.json', { client_id: 'Web', audience: 'https://api.test', scope: [] });
    await folder.write('database-connections/users/database.json', {
      name: 'users',
      enabled_clients: ['Web'],
    });
    await folder.write('actions/Gate.json', {
      name: 'Gate',
      code: 'old/actions/Gate/code.js',
      deployed: true,
    });
    await folder.write('actions/Gate/code.js', 'exports.onExecutePostLogin = () => {};');
    await folder.write('triggers/triggers.json', { 'post-login': [{ action_name: 'Gate' }] });
    await folder.write('organizations/org.json', { name: 'org', connections: [{ name: 'users' }] });
    await folder.write('roles/reader.json', { name: 'reader', permissions: [] });
    await folder.write('pages/error_page.json', { name: 'error_page', html: './gone.html' });
    await folder.write('prompts/prompts.json', { identifier_first: true });
    await folder.write('prompts/screenRenderSettings/login_login.json', { prompt: 'login', screen: 'login' });
    const server = await startServer({ tenant: {} });
    try {
      const given = { path: folder.path };
      const lines = await order(server, 'plan', given);
      expect(lines.join()).to.contain('clients').and.contain('actions.Gate');
      expect(await order(server, 'apply', given)).to.deep.equal(lines);
      const ids = async () => (await server.store.collection('clients').list({})).records.map(({ id }) => id);
      const before = await ids();
      expect(await order(server, 'plan', given)).to.deep.equal([]);
      expect(await order(server, 'apply', given)).to.deep.equal([]);
      expect(await ids()).to.deep.equal(before);
      const { tenant } = await loadTenantFile(folder.path, {});
      expect(tenant.actions?.[0]?.code).to.contain('onExecutePostLogin');
      expect(tenant.pages?.[0]?.html).to.equal('');
      expect(tenant.prompts).to.deep.include({
        identifier_first: true,
        screenRenderers: [{ prompt: 'login', screen: 'login' }],
      });
    } finally {
      await server.stop();
    }
  });

  it('has forms, flows and renderers of a YAML file in JSON files, never outside of the folder', async () => {
    await folder.write('forms/one.json', '{ "nodes": [], "name": "of the file", "note": "##NOTE##" }');
    await folder.write('render/a.json', { prompt: 'login', screen: 'login' });
    const yaml = (form: string) =>
      folder.write(
        'tenant.yaml',
        `forms: [{ name: One, body: ${form} }]
flows: [{ name: Inline, actions: [] }]
prompts: { screenRenderers: [{ login: { login: ./render/a.json, other: ./render/gone.json } }] }
`,
      );
    const { tenant, warnings } = await loadTenantFile(await yaml('./forms/one.json'), { NOTE: 'set' });
    expect(tenant.forms).to.deep.equal([{ name: 'of the file', nodes: [], note: 'set' }]);
    expect(tenant.flows).to.deep.equal([{ name: 'Inline', actions: [] }]);
    expect(tenant.prompts?.screenRenderers).to.deep.equal([{ prompt: 'login', screen: 'login' }]);
    expect(warnings.join()).to.contain('./render/gone.json cannot be read (there is no such file)');
    for (const [form, cause] of [
      ['./forms/gone.json', 'there is no such file'],
      ['../../outside.json', 'it is not in the folder of the tenant file'],
    ] as const) {
      const thrown: unknown = await loadTenantFile(await yaml(form), { NOTE: 'set' }).catch(
        (fault: unknown) => fault,
      );
      expect((thrown as TenantFault).faults?.join()).to.contain(
        `forms[0]: ${form} cannot be read (${cause})`,
      );
    }
  });

  it('keeps the stored secret of an action that an export does not show', async () => {
    const action = (secrets: object[]) => ({ actions: [{ name: 'A', code: '//', deployed: true, secrets }] });
    const server = await startServer({ tenant: action([{ name: 'KEY', value: 'stored' }]) });
    try {
      const path = await folder.write('tenant.yaml', action([{ name: 'KEY', value: '_VALUE_NOT_SHOWN_' }]));
      expect(await order(server, 'apply', { path })).to.deep.equal([]);
      const [stored] = await server.store.collection('documents').findBy('kind', 'action');
      expect(JSON.stringify(stored?.body.secrets)).to.contain('"stored"');
    } finally {
      await server.stop();
    }
  });

  it('has sections of its own for what it excludes', async () => {
    const path = await folder.write('tenant.yaml', {
      clients: [{ name: 'One' }, { name: 'Two' }],
      exclude: { clients: ['Two'] },
    });
    const { tenant, report } = await loadTenantFile(path, {});
    expect(tenant.clients.map(({ name }) => name)).to.deep.equal(['One']);
    expect(report).to.deep.equal([]);
  });
});
