// The tenant file as YAML: faults are reported with their lines, and no text makes the parser hang.
import { expect } from 'chai';
import { readYaml } from '../../src/tenant/document.ts';
import { parseTenant, TenantFault } from '../../src/tenant/load.ts';

/** Returns the faults of a text as messages. */
function faultsOf(text: string): readonly string[] {
  try {
    parseTenant(text, {}, 'tenant.yaml');
  } catch (thrown) {
    if (thrown instanceof TenantFault) return thrown.faults;
    throw thrown;
  }
  return [];
}

const letters = 'abcdefghij';

describe('the YAML of a tenant file', () => {
  it('is refused where it is an export of users, which would remove what there is', () => {
    expect(faultsOf('{"user_id":"auth0|1","email":"ada@example.test","identities":[]}').join()).to.contain(
      'an export of users, and no tenant',
    );
    expect(faultsOf('')).to.deep.equal([]);
    expect(faultsOf('colours: {}\nclients: []')).to.deep.equal([]);
  });

  for (const [what, text, fault] of [
    ['that refers to itself', 'tenant: {}\nx: &a [*a]', '*a is a part of what it stands for (tenant.yaml:2)'],
    [
      'with an alias inside its own anchor',
      'x: &a\n  y:\n    z: *a',
      '*a is a part of what it stands for (tenant.yaml:3)',
    ],
    ['with an alias without an anchor', 'x: *a', '*a stands for no anchor before it (tenant.yaml:1)'],
    [
      'with an alias before its anchor',
      'x: *a\ny: &a 1',
      '*a stands for no anchor before it (tenant.yaml:1)',
    ],
    [
      'whose aliases multiply',
      [
        'a: &a [x, x, x, x, x, x, x, x, x, x]',
        ...[...letters.slice(1)].map(
          (one, i) => `${one}: &${one} [${Array(10).fill(`*${letters[i]}`).join(', ')}]`,
        ),
      ].join('\n'),
      'its aliases make more than 1000000 values of it (tenant.yaml:6)',
    ],
    [
      'whose aliases nest',
      Array.from({ length: 200 }, (_, i) => `k${i}: &a${i} [${i === 0 ? 'x' : `*a${i - 1}`}]`).join('\n'),
      'its aliases nest it more than 100 levels deep (tenant.yaml:100)',
    ],
    [
      'with too many aliases',
      `x: &a [1]\ny:\n${'  - *a\n'.repeat(5_001)}`,
      'it has more than 5000 aliases (tenant.yaml:5003)',
    ],
    [
      'that is nested too deeply',
      `${'['.repeat(150)}${']'.repeat(150)}`,
      'it is nested more than 100 levels deep (tenant.yaml:1)',
    ],
    ['that is nested too deeply for the parser', '['.repeat(20_000), 'it is nested too deeply'],
    ['with a key twice', 'clients: []\ntenant: {}\nclients: []', 'Map keys must be unique (tenant.yaml:3)'],
    ['with tabs', 'tenant:\n\tfriendly_name: x', 'Tabs are not allowed as indentation (tenant.yaml:2)'],
    [
      'with two documents',
      'clients: []\n---\nclients: []',
      'there is more than one document (tenant.yaml:2)',
    ],
  ] as const) {
    it(`is rejected for a text ${what}`, () => {
      const faults = faultsOf(text).join('\n');
      expect(faults).to.contain('not valid YAML: ').and.contain(fault);
    });
  }

  it('reports several faults at once, and quotes the text in none', () => {
    const faults = faultsOf('a: [\nb: hidden }\nc: "hidden" hidden: hidden\n');
    expect(faults.length).to.be.above(1);
    expect(faults.join()).not.to.contain('hidden');
  });

  it('may contain aliases', () => {
    const text =
      'x: &urls [https://a.test/, https://b.test/]\nclients:\n  - { client_id: a, name: A, callbacks: *urls }';
    expect(parseTenant(text, {}).tenant.clients[0]?.callbacks).to.deep.equal([
      'https://a.test/',
      'https://b.test/',
    ]);
  });

  it('may contain more aliases than the parser allows by default', () => {
    const clients = Array.from(
      { length: 300 },
      (_, i) => `  - { client_id: c${i}, name: C${i}, callbacks: *urls }`,
    );
    const text = ['x: &urls [https://a.test/]', 'clients:', ...clients].join('\n');
    expect(parseTenant(text, {}).tenant.clients).to.have.length(300);
  });

  it('has a line for each value, and none for a missing section', () => {
    const read = readYaml(
      'clients:\n  - client_id: x\n\n    name: X\n  - &y\n    client_id: y\nusers: [*y]\n',
    );
    if ('faults' in read) throw new Error('it has faults');
    const line = (path: string) => read.lineOf(path.split('.'));
    expect(line('clients')).to.equal(1);
    expect(line('clients.0.name')).to.equal(4);
    expect(line('clients.1.name')).to.be.within(5, 6);
    expect(line('users.0')).to.equal(7);
    expect(line('nothing')).to.equal(undefined);
  });

  it('with an unknown tag is read, with a warning that names the tag', () => {
    const { warnings } = parseTenant('tenant: {}\nmoon: !full x', {}, 'tenant.yaml');
    expect(warnings.join('\n')).to.contain('!full').and.contain('(tenant.yaml:2)');
  });
});
