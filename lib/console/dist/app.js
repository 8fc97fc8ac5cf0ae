import{U as m,Ya as p,b as o,ea as i,x as r}from"./shell.js";var t=document.getElementById("app");t&&i().finally(()=>{r(),o(m(p,{}),t)});
