import{V as m,Ya as p,b as o,fa as i,y as r}from"./shell.js";var t=document.getElementById("app");t&&i().finally(()=>{r(),o(m(p,{}),t)});
