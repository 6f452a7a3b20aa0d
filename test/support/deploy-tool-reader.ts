// The deploy tool in a process of its own: reads the tenant files and folders that it is given, and prints what it read as JSON.
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { writeAssets } from './deploy-tool.ts';

const require = createRequire(import.meta.url);

interface Context {
  assets: Record<string, unknown>;
  loadAssetsFromLocal(): Promise<void>;
}
type NewContext = new (config: object, client: object) => Context;
type NewTool = new (
  client: object,
  assets: object,
  config: (name: string) => unknown,
) => { validate(): Promise<void> };

/** A client of a service that has nothing. The tool asks for rules, to see whether two have one place. */
const EMPTY = { rules: { list: async () => ({ data: [], rules: [], hasNextPage: () => false }) } };

async function read(path: string): Promise<object> {
  const kind = statSync(path).isDirectory() ? 'directory' : 'yaml';
  const { default: ToolContext } = require(`auth0-deploy-cli/lib/context/${kind}/index.js`) as {
    default: NewContext;
  };
  const { default: Tool } = require('auth0-deploy-cli/lib/tools/auth0/index.js') as { default: NewTool };
  // The tool takes all variables of the environment, unless it is told otherwise.
  const config = { AUTH0_INPUT_FILE: path, AUTH0_KEYWORD_REPLACE_MAPPINGS: { ...process.env } };
  const context = new ToolContext(config, EMPTY);
  await context.loadAssetsFromLocal();
  const { exclude: _exclude, include: _include, ...assets } = context.assets;
  const given = Object.fromEntries(Object.entries(assets).filter(([, value]) => value !== null));
  const configured = (name: string) => (config as Record<string, unknown>)[name];
  // It also adds what its schemas have as defaults.
  await new Tool(EMPTY, given, configured).validate();
  return given;
}

// Loaded first, because the tool's files import each other in a circle.
require('auth0-deploy-cli');
const all: object[] = [];
for (const path of process.argv.slice(2)) all.push(await read(path));
writeAssets(all);
