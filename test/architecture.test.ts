// Keeps the import rules of the design: who may know whom.
import { expect } from 'chai';
import { cruise, type ICruiseResult } from 'dependency-cruiser';

const FEATURES = [
  'login',
  'passwordless',
  'database',
  'mfa',
  'logout',
  'saml',
  'connections',
  'management',
  'development',
];
const features = `^src/(${FEATURES.join('|')})/`;
/** Only one place may import the package. */
const owned: [string, string][] = [
  ['oidc-provider', '^src/engine/'],
  ['lowdb', '^src/store/lowdb'],
  ['pg', '^src/store/postgres'],
  ['nodemailer', '^src/delivery/'],
  ['twilio', '^src/delivery/'],
];

const forbidden = [
  {
    name: 'no-circular',
    severity: 'error',
    from: { path: '^src/' },
    to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
  },
  {
    name: 'features-do-not-know-one-another',
    severity: 'error',
    from: { path: `^src/(${FEATURES.join('|')})/` },
    to: { path: features, pathNot: '^src/$1/' },
  },
  {
    name: 'only-server-names-features',
    severity: 'error',
    from: { path: '^src/', pathNot: [features, '^src/(server|services)\\.ts$'] },
    to: { path: features },
  },
  {
    name: 'store-imports-no-one-above',
    severity: 'error',
    from: { path: '^src/store/' },
    to: {
      path: '^src/',
      pathNot: ['^src/store/', '^src/http/runtime\\.ts$'],
      dependencyTypesNot: ['type-only'],
    },
  },
  {
    name: 'http-imports-no-one-above',
    severity: 'error',
    from: { path: '^src/http/' },
    to: { path: '^src/', pathNot: '^src/http/', dependencyTypesNot: ['type-only'] },
  },
  {
    name: 'shared-capabilities-do-not-know-the-engine',
    severity: 'error',
    from: { path: '^src/(users|delivery|protection|tenant)/' },
    to: { path: '^src/engine/' },
  },
  {
    name: 'deep-engine-imports-only-in-internals',
    severity: 'error',
    from: { path: '^src/', pathNot: '^src/engine/internals\\.ts$' },
    to: { path: 'oidc-provider/lib/(?!index\\.js)' },
  },
  ...owned.map(([name, owner]) => ({
    name: `only-its-owner-imports-${name}`,
    severity: 'error',
    from: { path: '^src/', pathNot: owner },
    to: { path: [`^node_modules/${name}/`, `^node_modules/@types/${name}/`, `^${name}$`] },
  })),
];

describe('the architecture', () => {
  let result: ICruiseResult;

  before(async () => {
    const { output } = await cruise(
      ['src'],
      {
        ruleSet: { forbidden: forbidden as never },
        validate: true,
        tsPreCompilationDeps: true,
        parser: 'swc',
        doNotFollow: { path: 'node_modules' },
        exclude: { path: '^node:' },
      },
      { exportsFields: ['exports'], conditionNames: ['import', 'types', 'node', 'default'] },
    );
    result = output as ICruiseResult;
  });

  it('is what the cruiser sees: every module, resolved', () => {
    expect(result.summary.totalCruised).to.be.above(30);
    const lost = result.modules.flatMap(({ source, dependencies }) =>
      dependencies
        .filter((d) => d.couldNotResolve && !d.module.startsWith('node:'))
        .map((d) => `${source} → ${d.module}`),
    );
    expect(lost).to.deep.equal([]);
    const engine = result.modules.find(({ source }) => source === 'src/engine/provider.ts');
    expect(engine?.dependencies.map(({ module }) => module)).to.include('oidc-provider');
  });

  it('keeps its import rules', () => {
    const broken = result.summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`);
    expect(broken).to.deep.equal([]);
  });
});
