// For the deploy tool in a process of its own (`--import`): its schema spells out the texts of every prompt and screen for each
// language that the hosted service has, 8 MB, whose compilation takes most of a run. Those of the sample tenant show the same.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.resolve('auth0-deploy-cli'));
const { languages }: { languages: string[] } = require('./types');
languages.splice(0, Infinity, 'de', 'en');
