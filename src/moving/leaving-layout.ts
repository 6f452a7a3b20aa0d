// The files of a tenant that moves out, as the hosted service's deploy tool lays them out: one YAML file with scripts, pages and
// messages beside it, or a folder of JSON files. Gatehouse reads both (src/tenant/tenant-folder.ts, src/tenant/included-files.ts).
import { isJsonObject } from '../runtime/json.ts';
import { GATEHOUSE_FILE } from '../tenant/gatehouse-file.ts';
import { nameOf, SECTION_KEYS } from '../tenant/sections.ts';
import { SECTION_FILES, SECTION_FOLDERS } from '../tenant/tenant-folder.ts';
import { fileNames } from './file-names.ts';
import { type Members, sendsMail, text } from './leaving-sections.ts';
import type { LeavingTenant } from './leaving-tenant.ts';
import { jsonText, yamlText } from './plain-text.ts';

export const FORMATS = ['yaml', 'directory'] as const;
export type Format = (typeof FORMATS)[number];

/** Contents by path below the folder of the tenant; steps are separated by `/`. */
export type Files = Map<string, string>;

/** Returns the contents of all files. */
export function filesOf({ sections, own }: LeavingTenant, format: Format): Files {
  const files: Files = new Map();
  const folders = new Map<string, (text: string) => string>();
  const layout: Layout = {
    nameIn: (folder, text) => {
      const names = folders.get(folder) ?? fileNames(folder === 'emails' ? ['provider'] : []);
      folders.set(folder, names);
      return names(text);
    },
    add: (path, content) => void files.set(path, content),
  };
  const forTool = format === 'yaml' ? writeYaml(layout, sections) : writeFolder(layout, sections);
  const all = { ...own, for_the_tool: [...(own.for_the_tool ?? []), ...forTool] };
  files.set(GATEHOUSE_FILE, HEADER + yamlText(all));
  return files;
}

const HEADER = `# What of this tenant only Gatehouse knows. The hosted service's deploy tool does not read this file; Gatehouse joins it with the
# tenant beside it. It may contain secrets: keep it as you keep them.
`;

const YAML_HEADER = `# A tenant of Gatehouse, for the hosted service's deploy tool. What only Gatehouse knows is in ${GATEHOUSE_FILE}. It contains secrets:
# keep it as you keep them. Users are not in it.
`;

interface Layout {
  /** Returns the name of an object's file in a folder, without an ending. */
  nameIn(folder: string, text: string): string;
  add(path: string, content: string): void;
}

const itemsOf = (value: unknown): Members[] => (Array.isArray(value) ? (value as Members[]) : []);

/** Returns what an item's file is named for. */
const titleOf = (section: string, item: Members): string =>
  (SECTION_KEYS[section] ?? []).length === 0 ? text(item.name) || section : nameOf(section, item);

/** Moves scripts of a database into files. @returns the database with their paths, `start` before each. */
function withScriptFiles(
  layout: Layout,
  database: Members,
  { folder, start }: { folder: string; start: string },
): Members {
  const options = isJsonObject(database.options) ? database.options : {};
  if (!isJsonObject(options.customScripts)) return database;
  const scripts = Object.entries(options.customScripts).map(([name, script]): [string, unknown] => {
    if (typeof script !== 'string') return [name, script];
    const file = `${layout.nameIn(folder, name)}.js`;
    layout.add(`${folder}/${file}`, script);
    return [name, `${start}${file}`];
  });
  return { ...database, options: { ...options, customScripts: Object.fromEntries(scripts) } };
}

/** Moves the mail of a passwordless connection into a file. */
function withMailFile(layout: Layout, connection: Members, name: string): Members {
  const { options } = connection;
  if (!sendsMail(connection) || !isJsonObject(options) || !isJsonObject(options.email)) return connection;
  layout.add(`connections/${name}.html`, text(options.email.body));
  return { ...connection, options: { ...options, email: { ...options.email, body: `./${name}.html` } } };
}

/** Moves the login page of an application into a file. */
function withLoginPage(layout: Layout, client: Members, name: string): Members {
  if (text(client.custom_login_page) === '') return client;
  const file = `${name}_custom_login_page.html`;
  layout.add(`clients/${file}`, text(client.custom_login_page));
  return { ...client, custom_login_page: `./${file}` };
}

/** Moves the code of Actions and their modules into a file in a folder of its own; the path is that from the tenant's folder. */
function withCodeFile(layout: Layout, item: Members, path: string): Members {
  layout.add(`${path}/code.js`, text(item.code));
  return { ...item, code: `./${path}/code.js` };
}

const CODE_FOLDERS: Readonly<Record<string, string>> = {
  actions: 'actions',
  actionModules: 'action-modules',
};

/** Writes one YAML file. @returns members that are for the tool alone. */
function writeYaml(layout: Layout, sections: Members): string[] {
  const file = (folder: string, name: string, content: string) => {
    layout.add(`${folder}/${name}`, content);
    return `./${folder}/${name}`;
  };
  const textIn = (folder: string, member: string, ending: string, section: string) => (item: Members) => ({
    ...item,
    [member]: file(folder, `${layout.nameIn(folder, titleOf(section, item))}.${ending}`, text(item[member])),
  });
  const jsonIn = (folder: string) => (item: Members) => {
    const name = `${layout.nameIn(folder, text(item.name))}.json`;
    return { name: item.name, body: file(folder, name, jsonText(item)) };
  };
  const changes: Readonly<Record<string, (item: Members) => Members>> = {
    ...Object.fromEntries(
      Object.entries(CODE_FOLDERS).map(([section, folder]) => [
        section,
        (item: Members) => withCodeFile(layout, item, `${folder}/${layout.nameIn(folder, text(item.name))}`),
      ]),
    ),
    clients: (item) => withLoginPage(layout, item, layout.nameIn('clients', text(item.name))),
    connections: (item) => withMailFile(layout, item, layout.nameIn('connections', text(item.name))),
    databases: (item) => {
      const folder = `databases/${layout.nameIn('databases', text(item.name))}`;
      return withScriptFiles(layout, item, { folder, start: `./${folder}/` });
    },
    emailTemplates: textIn('emailTemplates', 'body', 'html', 'emailTemplates'),
    flows: jsonIn('flows'),
    forms: jsonIn('forms'),
    hooks: textIn('hooks', 'script', 'js', 'hooks'),
    pages: textIn('pages', 'html', 'html', 'pages'),
    rules: textIn('rules', 'script', 'js', 'rules'),
  };
  const changed = Object.entries(sections).map(([section, value]): [string, unknown] => {
    const change = changes[section];
    if (change !== undefined && Array.isArray(value)) return [section, itemsOf(value).map(change)];
    if (section === 'branding' && isJsonObject(value) && Array.isArray(value.templates)) {
      const template = textIn('branding_templates', 'body', 'html', 'templates');
      const named = (item: Members) => ({ ...template({ ...item, name: item.template }), name: undefined });
      return [section, { ...value, templates: itemsOf(value.templates).map(named) }];
    }
    if (section === 'prompts' && isJsonObject(value) && Array.isArray(value.screenRenderers)) {
      const renderers = itemsOf(value.screenRenderers).map((one) => {
        const folder = 'prompts/screenRenderSettings';
        const name = `${layout.nameIn(folder, `${text(one.prompt)}_${text(one.screen)}`)}.json`;
        return { [text(one.prompt)]: { [text(one.screen)]: file(folder, name, jsonText(one)) } };
      });
      return [section, { ...value, screenRenderers: renderers }];
    }
    return [section, value];
  });
  layout.add('tenant.yaml', YAML_HEADER + yamlText(Object.fromEntries(changed)));
  return [];
}

const FOLDER_OF = new Map(Object.entries(SECTION_FOLDERS).map(([folder, section]) => [section, folder]));

/** Writes a folder of JSON files. @returns members that are for the tool alone. */
function writeFolder(layout: Layout, sections: Members): string[] {
  const json = (path: string, value: unknown) => layout.add(path, jsonText(value));
  /** Writes an item with a text in a file of the same name beside it. */
  const pair = (folder: string, section: string, member: string, ending: string) => (item: Members) => {
    const name = layout.nameIn(folder, titleOf(section, item));
    layout.add(`${folder}/${name}.${ending}`, text(item[member]));
    json(`${folder}/${name}.json`, { ...item, [member]: `./${name}.${ending}` });
  };
  const items: Readonly<Record<string, (item: Members) => void>> = {
    ...Object.fromEntries(
      Object.entries(CODE_FOLDERS).map(([section, folder]) => [
        section,
        (item: Members) => {
          const name = layout.nameIn(folder, text(item.name));
          json(`${folder}/${name}.json`, withCodeFile(layout, item, `${folder}/${name}`));
        },
      ]),
    ),
    clients: (item) => {
      const name = layout.nameIn('clients', text(item.name));
      json(`clients/${name}.json`, withLoginPage(layout, item, name));
    },
    connections: (item) => {
      const name = layout.nameIn('connections', text(item.name));
      json(`connections/${name}.json`, withMailFile(layout, item, name));
    },
    databases: (item) => {
      const folder = `database-connections/${layout.nameIn('database-connections', text(item.name))}`;
      json(`${folder}/database.json`, withScriptFiles(layout, item, { folder, start: './' }));
    },
    emailTemplates: pair('emails', 'emailTemplates', 'body', 'html'),
    hooks: pair('hooks', 'hooks', 'script', 'js'),
    pages: pair('pages', 'pages', 'html', 'html'),
    rules: pair('rules', 'rules', 'script', 'js'),
  };
  const forTool: string[] = [];
  for (const [section, value] of Object.entries(sections)) {
    const folder = FOLDER_OF.get(section);
    const write =
      items[section] ??
      (folder === undefined
        ? undefined
        : (item: Members) => json(`${folder}/${layout.nameIn(folder, titleOf(section, item))}.json`, item));
    if (write !== undefined && Array.isArray(value)) for (const item of itemsOf(value)) write(item);
    else if (section === 'branding' && isJsonObject(value)) writeBranding(layout, value);
    else if (section === 'prompts' && isJsonObject(value)) writePrompts(layout, value);
    else if (section === 'attackProtection' && isJsonObject(value))
      forTool.push(...writeProtection(layout, value));
    else {
      const file = Object.entries(SECTION_FILES).find(([, path]) => path.length === 1 && path[0] === section);
      if (file === undefined) throw new Error(`the deploy tool's folder has no place for ${section}`);
      json(file[0], value);
    }
  }
  return forTool;
}

function writeBranding(layout: Layout, { templates, ...branding }: Members): void {
  const folder = 'branding/templates';
  layout.add('branding/branding.json', jsonText(branding));
  for (const item of itemsOf(templates)) {
    const name = layout.nameIn(folder, text(item.template));
    layout.add(`${folder}/${name}.html`, text(item.body));
    layout.add(`${folder}/${name}.json`, jsonText({ ...item, body: `./${name}.html` }));
  }
}

function writePrompts(layout: Layout, { customText, partials, screenRenderers, ...settings }: Members): void {
  layout.add('prompts/prompts.json', jsonText(settings));
  if (customText !== undefined) layout.add('prompts/custom-text.json', jsonText(customText));
  if (isJsonObject(partials)) {
    const all = Object.entries(partials).map(([prompt, screens]): [string, unknown] => {
      const byScreen = Object.entries(Object(screens) as Members).map(
        ([screen, places]): [string, unknown] => {
          const folder = `partials/${layout.nameIn('prompts/partials', `${prompt} ${screen}`)}`;
          const parts = Object.entries(Object(places) as Members).map(([name, template]) => {
            const path = `${folder}/${layout.nameIn(`prompts/${folder}`, name)}.liquid`;
            layout.add(`prompts/${path}`, text(template));
            return { name, template: path };
          });
          return [screen, parts];
        },
      );
      return [prompt, [Object.fromEntries(byScreen)]];
    });
    layout.add('prompts/partials.json', jsonText(Object.fromEntries(all)));
  }
  const folder = 'prompts/screenRenderSettings';
  for (const one of itemsOf(screenRenderers)) {
    const name = layout.nameIn(folder, `${text(one.prompt)}_${text(one.screen)}`);
    layout.add(`${folder}/${name}.json`, jsonText(one));
  }
}

/** What the tool wants to be there, with what the hosted service has by default. */
const WANTED_PROTECTION = 'breachedPasswordDetection';

function writeProtection(layout: Layout, settings: Members): string[] {
  const isMissing = settings[WANTED_PROTECTION] === undefined;
  const all: Members = isMissing ? { ...settings, [WANTED_PROTECTION]: { enabled: false } } : settings;
  for (const [file, [section, member = '']] of Object.entries(SECTION_FILES))
    if (section === 'attackProtection' && all[member] !== undefined) layout.add(file, jsonText(all[member]));
  return isMissing ? [`attackProtection.${WANTED_PROTECTION}`] : [];
}
