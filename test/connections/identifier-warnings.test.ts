// What the users of a connection are identified by, and the warnings where somebody else may get it.
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { STRATEGIES } from '../../src/records/connections/connections.ts';
import { readTenant } from '../../src/tenant/load.ts';
import { tenant as base } from '../support/flows.ts';

const warningsOf = (strategy: string, options: object) =>
  readTenant({ ...base, connections: [{ name: 'corp', strategy, options }] }).warnings.filter((one) =>
    one.includes('are identified by'),
  );
const EMAIL_CLAIM = 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress';

describe('identifiers that somebody else may get', () => {
  const warned: [string, object][] = [
    ['adfs', { user_id_attribute: 'upn' }],
    ['adfs', { user_id_attribute: 'email' }],
    ['samlp', { user_id_attribute: EMAIL_CLAIM }],
    ['samlp', { user_id_attribute: 'urn:oid:0.9.2342.19200300.100.1.3' }],
    ['pingfederate', { fieldsMap: { user_id: ['objectGUID', 'mail'] } }],
    ['oauth2', { fieldsMap: { user_id: 'login' } }],
  ];
  for (const [strategy, options] of warned) {
    it(`are warned of when the tenant file is read: ${strategy} with ${JSON.stringify(options)}`, () => {
      const [warning] = warningsOf(strategy, options);
      expect(warning).to.match(/^connections\[0\]\.options: the users of corp are identified by /);
    });
  }

  const permanent: [string, object][] = [
    ['adfs', { user_id_attribute: 'objectGUID' }],
    ['samlp', { user_id_attribute: 'http://schemas.microsoft.com/identity/claims/objectidentifier' }],
    ['samlp', {}],
    ['oauth2', { fieldsMap: { user_id: 'account_id', email: 'mail' } }],
    ['google-apps', {}],
    ['ad', {}],
  ];
  for (const [strategy, options] of permanent) {
    it(`are not warned of where none is chosen: ${strategy} with ${JSON.stringify(options)}`, () => {
      expect(warningsOf(strategy, options)).to.deep.equal([]);
    });
  }

  it('are joined by a warning of addresses that administrators of any organization write and that count as verified', () => {
    const trust = { should_trust_email_verified_connection: 'always_set_emails_as_verified' };
    const waad = { client_id: 'x', client_secret: 'y' };
    const all = (options: object) =>
      readTenant({
        ...base,
        connections: [{ name: 'corp', strategy: 'waad', options: { ...waad, ...options } }],
      }).warnings.filter((one) => one.includes('takes every address as verified'));
    for (const common of ['useCommonEndpoint', 'waad_common_endpoint'])
      expect(all({ ...trust, [common]: true })[0], common).to.match(
        /^connections\[0\]\.options: corp takes /,
      );
    expect(all({ ...trust, tenant_domain: 'corp.example' })).to.deep.equal([]);
    expect(all({ useCommonEndpoint: true })).to.deep.equal([]);
  });

  it('are documented for every strategy', () => {
    const folder = new URL('../../docs/do/connections/', import.meta.url);
    const pages = readdirSync(folder).map((page) => readFileSync(new URL(page, folder), 'utf8'));
    const rows = pages.flatMap((text) => text.split('\n').filter((line) => line.startsWith('| ')));
    for (const [name, record] of Object.entries(STRATEGIES)) {
      const { is, isReassigned } = record.identifier({});
      expect(is, name).to.not.equal('');
      expect(isReassigned, name).to.be.oneOf(['never', 'unknown', 'proof']);
      expect(
        rows.some((row) => row.split('|')[1]?.includes(`\`${name}\``)),
        name,
      ).to.equal(true);
    }
  });
});
