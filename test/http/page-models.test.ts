// Every member that a template of a page reads is one of the page's model: the templates are translated into TypeScript,
// and the compiler compares what they read with the types that the pages are declared with.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, parse } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { createTranslator, PRELUDE, type Translated } from '../support/template-reads.ts';
import { VIEWS } from './site.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SOURCES = join(ROOT, 'src');

/** A page as a source file declares it: a constant with the template. */
interface Declared {
  file: string;
  name: string;
  template: string;
}

const DECLARATION = /export const (\w+_PAGE) =\s*declare\w+(?:<.*?>)?\(\s*'([^']+)'/gs;

function filesBelow(directory: string, ending: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((one) => one.endsWith(ending));
}

function declaredPages(): Declared[] {
  return filesBelow(SOURCES, '.ts').flatMap((path) => {
    const file = join(SOURCES, path);
    const found = readFileSync(file, 'utf8').matchAll(DECLARATION);
    return [...found].map(([, name = '', template = '']) => ({ file, name, template }));
  });
}

const TEMPLATES = filesBelow(join(VIEWS, 'pages'), '.liquid').map((file) =>
  file.replaceAll('\\', '/').replace(/\.liquid$/, ''),
);

/**
 * Returns what the compiler says about what templates read, with the places in the templates.
 * @param models the statement that declares `model`, by template, and the imports that it needs.
 */
function faultsOf(
  translated: ReadonlyMap<string, Translated>,
  models: ReadonlyMap<string, { imports: string; model: string }>,
): string[] {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-templates-'));
  const files = new Map<string, { template: string; places: (string | undefined)[] }>();
  try {
    writeFileSync(join(directory, 'prelude.d.ts'), PRELUDE);
    for (const [index, [template, { reads }]] of [...translated].entries()) {
      const { imports, model } = models.get(template) ?? { imports: '', model: 'declare const model: {};' };
      const lines: [string, string?][] = [
        [`import type { Globals } from '${SOURCES}/capabilities/pages/render.ts';`],
        [imports],
        ['declare const globals: Globals;'],
        [model],
        ...reads.map(({ code, place }): [string, string] => [code, place]),
      ];
      files.set(`page-${index}.ts`, { template, places: lines.map(([, place]) => place) });
      writeFileSync(join(directory, `page-${index}.ts`), lines.map(([code]) => code).join('\n'));
    }
    const compilerOptions = {
      noUnusedLocals: false,
      noUnusedParameters: false,
      declaration: false,
      rewriteRelativeImportExtensions: false,
      allowImportingTsExtensions: true,
      typeRoots: [join(ROOT, 'node_modules/@types')],
    };
    const config = { extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: [directory, SOURCES] };
    writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(config));
    return [...new Set(compile(directory).map((line) => withPlace(line, files)))];
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function compile(directory: string): string[] {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  try {
    execFileSync(process.execPath, [compiler, '-p', directory, '--pretty', 'false'], {
      cwd: directory,
      encoding: 'utf8',
    });
    return [];
  } catch (thrown) {
    const { stdout } = thrown as { stdout: string };
    return stdout.split('\n').filter((line) => line.startsWith('page-'));
  }
}

function withPlace(
  line: string,
  files: ReadonlyMap<string, { template: string; places: (string | undefined)[] }>,
): string {
  const [, file = '', number, fault = line] = /^([^(]+)\((\d+),\d+\): error \w+: (.*)$/.exec(line) ?? [];
  const { template, places = [] } = files.get(file) ?? {};
  return `${template}, ${places[Number(number) - 1] ?? file}: ${fault}`;
}

describe('the templates of pages', function () {
  // The compiler checks all of src with them, beside the other tests.
  this.timeout(240_000);
  const translate = createTranslator({
    directory: join(VIEWS, 'pages'),
    partials: join(VIEWS, 'partials'),
    globals: ['page', 'tenant', 'locale'],
  });
  const declared = declaredPages();
  const translated = new Map(TEMPLATES.map((template) => [template, translate(template)]));

  it('are declared with their models, each once', () => {
    expect(declared.map(({ template }) => template).sort()).to.deep.equal([...TEMPLATES].sort());
  });

  it('read no member that their models lack, and those of e-mails and SMS neither', () => {
    const models = new Map<string, { imports: string; model: string }>(
      declared.map(({ file, name, template }) => [
        template,
        {
          imports: `import type { ${name} } from '${file}'; import type { Page } from '${SOURCES}/capabilities/pages/views.ts';`,
          model: `declare const model: typeof ${name} extends Page<infer M> ? M : never;`,
        },
      ]),
    );
    const all = new Map(translated);
    for (const [kind, type] of [
      ['email', 'EmailModel'],
      ['sms', 'SmsModel'],
    ] as const) {
      const directory = join(VIEWS, kind);
      const translateMessage = createTranslator({ directory });
      for (const file of filesBelow(directory, '.liquid')) {
        const template = parse(file).name;
        all.set(`${kind}/${template}`, translateMessage(template));
        models.set(`${kind}/${template}`, {
          imports: `import type { ${type} } from '${SOURCES}/capabilities/delivery/delivery-templates.ts';`,
          model: `declare const model: ${type};`,
        });
      }
    }
    expect(faultsOf(all, models)).to.deep.equal([]);
  });

  it('pass everything to their partials that those read', () => {
    const passed = new Set([...translated.values()].flatMap((one) => [...one.passed]));
    const unpassed = [...translated.values()].flatMap((one) => [...one.unpassed]);
    expect(unpassed.filter(([name]) => !passed.has(name))).to.deep.equal([]);
  });
});
