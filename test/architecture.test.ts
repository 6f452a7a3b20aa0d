// Checks the import rules of the design: which parts of the source may import which others.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { cruise, type ICruiseResult } from 'dependency-cruiser';
import { PROGRAMS } from '../build/bundle.ts';

/**
 * The map from top to bottom: each part imports only from lines below it, types included, and not from others in its
 * line. A file stands for itself, a folder for everything in it.
 */
const LAYERS: string[][] = [
  ['main.js', 'cli.ts', 'testing'],
  ['commands'],
  ['server'],
  ['moving'],
  ['settings'],
  ['features/console'],
  ['features/account', 'features/move'],
  [
    'features/connections',
    'features/factors',
    'features/grants',
    'features/logout',
    'features/registration',
    'features/saml',
    'features/management',
    'features/development',
    'features/metrics',
    'features/health.ts',
  ],
  ['features/flow'],
  ['engine/provider'],
  ['engine/authorize'],
  ['engine/token'],
  ['engine/login'],
  ['engine/binding'],
  ['engine/session'],
  ['engine/claims'],
  ['engine/admission'],
  ['engine/client'],
  ['engine/base'],
  ['capabilities/actions'],
  [
    'capabilities/delivery',
    'capabilities/protection',
    'capabilities/saml-messages',
    'capabilities/scripts',
    'capabilities/signing',
    'capabilities/tls',
    'capabilities/webauthn',
  ],
  ['capabilities/pages', 'capabilities/quickstarts'],
  ['capabilities/liquid'],
  ['users', 'tenant'],
  ['store'],
  ['records'],
  ['http'],
  ['runtime'],
];

/** The same inside of folders that have folders; `.` is what stands beside these. */
const INSIDE: Record<string, string[][]> = {
  'features/management/resources': [
    ['.'],
    ['users'],
    ['clients'],
    ['organizations'],
    ['connections'],
    ['actions'],
    ['log'],
    ['tenant'],
    ['base'],
  ],
  'features/connections/database': [['.'], ['mailed-links'], ['sign-up'], ['custom'], ['base']],
  records: [
    ['.'],
    ['state'],
    ['tenant'],
    ['users'],
    ['clients'],
    ['connections'],
    ['sinks', 'mail-providers', 'sms-providers'],
    ['base'],
  ],
  http: [['server'], ['outbound'], ['.']],
};

const pathOf = (name: string) => `^src/${name}${/\.[jt]s$/.test(name) ? '$' : '/'}`.replaceAll('.', '\\.');
const pathInside = (folder: string, name: string) =>
  name === '.' ? `^src/${folder}/[^/]+\\.ts$` : `^src/${folder}/${name}/`;
/** Packages that only one place may import, with the pattern of that place. */
const owned: [string, string][] = [
  ['oidc-provider', '^src/engine/'],
  ['lowdb', '^src/store/lowdb'],
  ['pg', '^src/store/postgres/'],
  ['nodemailer', '^src/capabilities/delivery/'],
  ['prom-client', '^src/features/metrics/'],
  ['@opentelemetry/api', '^src/runtime/tracing/'],
  ['twilio', '^src/capabilities/delivery/'],
  ['quickjs-emscripten-core', '^src/capabilities/scripts/'],
  ['liquidjs', '^src/capabilities/(liquid/liquid-templates|pages/render|delivery/delivery-templates)\\.ts$'],
  ['negotiator', '^src/http/languages\\.ts$'],
];

const forbidden = [
  {
    name: 'no-circular',
    severity: 'error',
    from: { path: '^src/' },
    to: { circular: true },
  },
  ...LAYERS.flatMap((line, index) => {
    const above = LAYERS.slice(0, index).flat();
    return line.map((name) => ({
      name: `${name}-imports-only-what-is-below`,
      severity: 'error',
      from: { path: pathOf(name) },
      to: { path: [...above, ...line.filter((other) => other !== name)].map(pathOf) },
    }));
  }),
  ...Object.entries(INSIDE).flatMap(([folder, lines]) =>
    lines.flatMap((line, index) => {
      const above = lines.slice(0, index).flat();
      const others = (name: string) => [...above, ...line.filter((other) => other !== name)];
      return line
        .filter((name) => others(name).length > 0)
        .map((name) => ({
          name: `${folder}/${name}-imports-only-what-is-below`,
          severity: 'error',
          from: { path: pathInside(folder, name) },
          to: { path: others(name).map((one) => pathInside(folder, one)) },
        }));
    }),
  ),
  {
    name: 'one-SQL-engine-does-not-import-the-other',
    severity: 'error',
    from: { path: '^src/store/(sqlite|postgres|sql)/' },
    to: { path: '^src/store/(sqlite|postgres)/', pathNot: '^src/store/$1/' },
  },
  {
    name: 'deep-engine-imports-only-in-internals',
    severity: 'error',
    from: { path: '^src/', pathNot: '^src/engine/base/internals\\.ts$' },
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

  it('has every module resolved by dependency-cruiser', () => {
    expect(result.summary.totalCruised).to.be.above(30);
    const lost = result.modules.flatMap(({ source, dependencies }) =>
      dependencies
        .filter((d) => d.couldNotResolve && !d.module.startsWith('node:'))
        .map((d) => `${source} → ${d.module}`),
    );
    expect(lost).to.deep.equal([]);
    const engine = result.modules.find(({ source }) => source === 'src/engine/provider/provider.ts');
    expect(engine?.dependencies.map(({ module }) => module)).to.include('oidc-provider');
  });

  it('gives every file and folder of src a line in the map', () => {
    const parts = LAYERS.flat();
    const partOf = ({ source }: { source: string }) =>
      parts.find((part) => source === `src/${part}` || source.startsWith(`src/${part}/`)) ?? source;
    const names = new Set(result.modules.filter(({ source }) => source.startsWith('src/')).map(partOf));
    expect([...names].sort()).to.deep.equal(parts.sort());
  });

  it('gives every folder inside of those with an order its place', () => {
    for (const [folder, lines] of Object.entries(INSIDE)) {
      const inside = result.modules
        .filter(({ source }) => source.startsWith(`src/${folder}/`))
        .map(({ source }) => source.slice(`src/${folder}/`.length).split('/'))
        .map(([name = '', below]) => (below === undefined ? '.' : name));
      expect([...new Set(inside)], folder).to.have.members(lines.flat());
    }
  });

  it('names files so that an editor tells them apart: no name occurs three times', () => {
    const named = Map.groupBy(
      // A command's file has the name of the command.
      result.modules.filter(({ source }) => /^src\/(?!commands\/)/.test(source)),
      ({ source }) => source.split('/').at(-1),
    );
    const same = [...named].filter(([name, files]) => files.length > 2 && name !== 'index.ts');
    expect(same.map(([name]) => name)).to.deep.equal([]);
  });

  it('is the map of CONTRIBUTING.md, line by line', () => {
    const [, map = ''] = readFileSync('CONTRIBUTING.md', 'utf8').split('## The map');
    const [table = ''] = map.split('Where to look first');
    const lines = [...table.matchAll(/^\| (`.*?) \|/gm)].map(([, cell = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
    );
    expect(lines).to.deep.equal(LAYERS);
  });

  it('keeps its import rules', () => {
    const broken = result.summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`);
    expect(broken).to.deep.equal([]);
  });

  it('loads the server only in the process that serves: not for a command, nor where workers are started', () => {
    const reached = new Set<string>();
    const follow = (source: string): void => {
      if (reached.has(source)) return;
      reached.add(source);
      const dependencies = result.modules.find((one) => one.source === source)?.dependencies ?? [];
      for (const { dynamic, dependencyTypes, resolved } of dependencies)
        if (!dynamic && !dependencyTypes.includes('type-only')) follow(resolved);
    };
    for (const file of ['commands/index', 'commands/start', 'server/workers']) follow(`src/${file}.ts`);
    expect(reached).to.include('src/server/stop.ts');
    for (const file of ['serve', 'start', 'server', 'features'])
      expect(reached).not.to.include(`src/server/${file}.ts`);
    expect([...reached].filter((source) => source.includes('oidc-provider'))).to.deep.equal([]);
  });

  it('has every file that is found by its path at run time, and bundles each that is a thread of its own', () => {
    const found = result.modules
      .filter(({ source }) => source.startsWith('src/'))
      .flatMap(({ source }) => {
        const text = readFileSync(source, 'utf8');
        const threads = [...text.matchAll(/moduleBeside\(import\.meta\.url, '([^']+)'\)/g)].map(
          ([, name]) => `./${name}.ts`,
        );
        const others = [...text.matchAll(/new URL\('(\.[^']+)', import\.meta\.url\)/g)].map(
          ([, path]) => path,
        );
        const at = (path = '') => join(dirname(source), path);
        return [
          ...threads.map((path) => ({ isThread: true, path: at(path) })),
          ...others.map((path) => ({ isThread: false, path: at(path) })),
        ];
      });
    expect(found.filter(({ path }) => !existsSync(path))).to.deep.equal([]);
    const threads = found.filter(({ isThread }) => isThread).map(({ path }) => path.slice('src/'.length));
    const entries = ['cli.ts', 'testing/index.ts'];
    expect([...entries, ...threads]).to.have.members(PROGRAMS);
  });

  it('reports an old Node.js by loading only what runs on it', () => {
    const dependencies = result.modules.find(({ source }) => source === 'src/cli.ts')?.dependencies ?? [];
    const before = dependencies.filter(({ dynamic }) => !dynamic).map(({ resolved }) => resolved);
    expect(before).to.have.members(['src/commands/node-version.js']);
    expect(dependencies.length).to.be.above(before.length);
  });

  it('has no tests that never run: what test files share calls the global `it` at each use', () => {
    // With `--parallel`, mocha makes a new `it` for each file. A test that is registered with a kept one joins a file
    // that is already over.
    const folder = new URL('.', import.meta.url);
    const kept = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
      .filter((file) =>
        /^(?:export )?(?:const|let) .*=.*\b(?:it|describe)(?:\.skip|\.only)?\s*[;:]/m.test(
          readFileSync(new URL(file, folder), 'utf8'),
        ),
      );
    expect(kept).to.deep.equal([]);
  });

  it('reads the host of a request where it is judged, and nowhere else: anybody may write any name into it', () => {
    const part = '(?:host|hostname|origin|href|URL)';
    const reads = [
      `\\bctx\\.(?:request\\.|req\\.)?${part}\\b`,
      `\\{[^{}]*\\b${part}\\b[^{}]*\\}\\s*(?::\\s*(?:Koa)?Context|=\\s*ctx(?:\\.request|\\.req)?\\s*[;,])`,
      `Pick<(?:Koa)?Context[^,]*,[^>]*'${part}'`,
      `headers(?:Distinct)?(?:\\.|\\[')host\\b`,
      `headers(?:Distinct)?:\\s*\\{\\s*host\\b`,
      `\\.get\\(\\s*'(?:host|x-forwarded-host)'`,
    ].map((text) => new RegExp(text));
    const found = sourcesWith(reads, ['http/server/request-target.ts', 'capabilities/tls/edge.ts']);
    expect(found).to.deep.equal([]);
  });

  it('reads signed JWTs in one place, where type, algorithm and critical extensions are judged', () => {
    const names = '(?:jwtVerify|compactVerify|flattenedVerify|generalVerify|decodeJwt|decodeProtectedHeader)';
    const found = sourcesWith(
      [new RegExp(`\\b${names}\\b`)],
      [
        'capabilities/signing/verify-jwt.ts',
        // The text of a program for somebody's API.
        'capabilities/quickstarts/other-snippets.ts',
      ],
    );
    expect(found).to.deep.equal([]);
  });

  it('verifies passwords only where wrong ones are counted: in the verifiers of strategies', () => {
    const calls =
      '(?:\\.(?:verifyPassword|passwordOf|isUsedBefore)|[dD]irectories\\.prove|[cC]ustomDatabases\\.login)\\(';
    const found = sourcesWith(
      [new RegExp(calls)],
      [
        'features/connections/database/database-strategy.ts',
        'features/connections/database/custom/custom-login.ts',
        'features/connections/ldap/ldap-strategy.ts',
        // Passes calls on, for administrators and for the trace of a trial login.
        'users/administrators.ts',
        'features/console/connections/try.ts',
        // A new user's own password, and the time of one for an address that is taken.
        'features/connections/database/custom/custom-users.ts',
        // A new password that must differ from the last ones: who sets it holds the link, and a wrong guess uses it up.
        'users/signup.ts',
        'features/console/administrators/password.ts',
        // The published password of an example, at the start.
        'features/console/administrators/example.ts',
        'tenant/examples.ts',
      ],
    );
    expect(found).to.deep.equal([]);
  });

  it('names no feature in the engine: features are passed in', () => {
    const folder = new URL('../src/engine/', import.meta.url);
    const named = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .flatMap((file) =>
        readFileSync(new URL(file, folder), 'utf8')
          .split('\n')
          .flatMap((line, index) =>
            /\/mfa\b|saml|passwordless|'auth0'|strategy ===/i.test(line)
              ? [`${file}:${index + 1}: ${line.trim()}`]
              : [],
          ),
      );
    expect(named).to.deep.equal([]);
  });
});

/** Returns the places in `src` that match one of the patterns, except in some files. */
function sourcesWith(patterns: readonly RegExp[], except: readonly string[]): string[] {
  const folder = new URL('../src/', import.meta.url);
  const all = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  expect(all).to.include.members([...except]);
  return all
    .filter((file) => file.endsWith('.ts') && !except.includes(file))
    .flatMap((file) => {
      const text = readFileSync(new URL(file, folder), 'utf8');
      return patterns.flatMap((pattern) => {
        const [match] = pattern.exec(text) ?? [];
        return match === undefined ? [] : [`${file}: ${match}`];
      });
    });
}
