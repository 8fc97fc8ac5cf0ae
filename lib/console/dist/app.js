import{C as r,K as m,P as i,b as o}from"./shell.js";var p=document.getElementById("app");p&&m().finally(()=>o(r(i,{}),p));
