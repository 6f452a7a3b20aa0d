// For the deploy tool in a separate process (`--import`): its schema contains the texts of every prompt and screen in
// each language of the hosted service, 8 MB, and compiling it takes most of the time. The languages of the sample
// tenant are enough for the tests.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.resolve('auth0-deploy-cli'));
const { languages }: { languages: string[] } = require('./types');
languages.splice(0, Infinity, 'de', 'en');
