// Every member that a tenant of the deploy tool may have has a verdict of `gatehouse move check`.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { RULES } from '../../src/moving/assess.ts';
import { hasVerdict, statementsOf } from '../../src/moving/verdicts/verdict.ts';
import { clientMembers, schemaMembers } from './deploy-tool-members.ts';

const without = (members: readonly string[][]) =>
  [...new Set(members.filter((path) => !hasVerdict(RULES, path)).map((path) => path.join('.')))].sort();

describe('the verdicts of gatehouse move check', () => {
  it('are there for each member of the deploy tool’s schemas', () => {
    const members = schemaMembers();
    expect(members.length).to.be.above(500);
    expect(without(members)).to.deep.equal([]);
  });

  it('are there for each member that the Management API has of applications, connections, APIs and the tenant', () => {
    const members = clientMembers();
    expect(members.length).to.be.above(500);
    expect(without(members)).to.deep.equal([]);
  });

  it('are there for each member of the deploy tool’s examples', () => {
    const members = readFileSync(join(import.meta.dirname, 'example-members.txt'), 'utf8')
      .trim()
      .split('\n');
    expect(without(members.map((path) => path.split('.')))).to.deep.equal([]);
  });

  it('are about a value: what is switched there to what is not so here is not in force', () => {
    const verdicts = (section: string, item: Record<string, unknown>) =>
      statementsOf(RULES, item, [section], item).map(({ verdict, path }) => `${path.join('.')}: ${verdict}`);
    const tenant = (isOn: boolean) =>
      verdicts('tenant', {
        flags: {
          enable_sso: isOn,
          trust_azure_adfs_email_verified_connection_property: isOn,
          enable_idtoken_api2: !isOn,
          change_pwd_flow_v1: !isOn,
        },
      });
    expect(tenant(true)).to.deep.equal([]);
    const google = (isOn: boolean) =>
      verdicts('connections', {
        strategy: 'google-apps',
        options: { handle_login_from_social: isOn, tenant_domain: 'example.test' },
      });
    expect(google(false)).to.deep.equal([]);
    expect(google(true)).to.deep.equal(['connections.options.handle_login_from_social: not in force']);
    const signOut = (isOff: boolean) =>
      verdicts('connections', {
        strategy: 'samlp',
        options: { disable_sign_out: isOff, disableSignout: isOff },
      });
    expect(signOut(false)).to.deep.equal([]);
    expect(signOut(true)).to.deep.equal(['connections.options.disable_sign_out: not in force']);
    const descriptions = (isOn: boolean) =>
      verdicts('tenant', { flags: { use_scope_descriptions_for_consent: isOn } });
    expect(descriptions(true)).to.deep.equal([]);
    expect(descriptions(false)).to.deep.equal([
      'tenant.flags.use_scope_descriptions_for_consent: in force, differently',
    ]);
    expect(tenant(false)).to.deep.equal(
      [
        'enable_sso',
        'trust_azure_adfs_email_verified_connection_property',
        'enable_idtoken_api2',
        'change_pwd_flow_v1',
      ].map((name) => `tenant.flags.${name}: not in force`),
    );
  });

  it('name documents that exist', () => {
    const decisions = [...new Set(RULES.flatMap(({ rule }) => rule.decision ?? []))];
    expect(decisions.length).to.be.above(5);
    for (const decision of decisions) {
      const [page = '', anchor] = decision.split('#');
      const text = readFileSync(join('docs', page), 'utf8');
      const anchors = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
        heading
          .toLowerCase()
          .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
          .replaceAll(' ', '-'),
      );
      if (anchor !== undefined) expect(anchors, decision).to.include(anchor);
    }
  });
});
