import vue from '@vitejs/plugin-vue';
import { defineConfig, loadEnv } from 'vite';

export default defineConfig(({ mode }) => {
  const { PORT, API_PORT } = loadEnv(mode, process.cwd(), '');
  return {
    plugins: [vue()],
    // The API has the same origin as the application, as behind a proxy in production.
    server: { port: Number(PORT), strictPort: true, proxy: { '/api': `http://localhost:${API_PORT}` } },
  };
});
